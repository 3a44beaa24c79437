// Runs a network with lists and optional outputs, and calls it wrongly: what it prints is in
// tests/vdla/packaging/test_bindings.py.
package main

// #cgo LDFLAGS: -L${SRCDIR}/vdla -llists -lm -lpthread
// #include "vdla/lists.h"
import "C"

import (
	"fmt"

	"lists/vdla"
)

func show(shape []int, values []float32) {
	for _, side := range shape {
		fmt.Printf("%dx", side)
	}
	for _, value := range values {
		fmt.Print(" ", value)
	}
	fmt.Println()
}

func fail(err error) {
	if err != nil {
		fmt.Println(err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func give(net *vdla.Network, count int64, flag uint8) {
	fail(vdla.Write(net, "rows", []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))
	fail(vdla.Write(net, "count", []int64{count}))
	fail(vdla.Write(net, "sizes", []int64{1, 2, 2, 1, 0, 2}))
	fail(vdla.Write(net, "flag", []uint8{flag}))
}

func bit(is bool, err error) int {
	if must(is, err) {
		return 1
	}
	return 0
}

func main() {
	net, second := must(vdla.Open(C.lists_open)), must(vdla.Open(C.lists_open))
	defer net.Close()
	defer second.Close()
	fail(second.Start(2))
	for _, info := range net.Inputs() {
		fmt.Print(info.Name, " ", info.Type, " ")
		show(info.Shape, nil)
	}
	fail(vdla.Write(net, "picture", make([]float32, 12)))
	fail(vdla.Write(net, "rows", make([]float32, 11)))
	fail(vdla.Write(net, "rows", make([]float64, 12)))
	_, err := vdla.Output[float32](net, "plain")
	fail(err)
	fail(net.Run())
	give(net, 2, 0)
	fail(net.Run())
	done := make(chan error)
	go func() {
		give(second, 3, 1)
		done <- second.Run()
	}()
	fail(<-done)
	fail(net.Run())
	show(nil, must(vdla.Output[float32](net, "plain")))
	for _, name := range []string{"each", "cut", "list", "empty", "maybe"} {
		for _, element := range must(vdla.List[float32](net, name)) {
			show(element.Shape, element.Values)
		}
	}
	for _, name := range []string{"plain", "none", "maybe", "empty", "list"} {
		fmt.Print(bit(net.Has(name)), " ")
	}
	fmt.Println(bit(second.Has("maybe")))
	show(nil, must(vdla.Output[float32](second, "maybe")))
	_, err = vdla.Output[float32](net, "none")
	fail(err)
	_, err = vdla.Output[float32](net, "each")
	fail(err)
	_, err = vdla.Output[float64](net, "plain")
	fail(err)
	_, err = vdla.List[float32](net, "lists")
	fail(err)
	fail(second.Start(65))
}
