// Recognizes a digit by the bundled network, from Go: see docs/packages.md, "In other languages".
package main

// #cgo LDFLAGS: -L${SRCDIR}/vdla -ldigits -lm -lpthread
// #include "vdla/digits.h"
import "C"

import (
	"fmt"
	"os"

	"recognize/vdla"
)

const image = "..####.." +
	".++++##." +
	".....##." +
	"..++##+." +
	".######." +
	"...##..." +
	"..##...." +
	"..##...."

func recognize() ([]float32, error) {
	net, err := vdla.Open(C.digits_open)
	if err != nil {
		return nil, err
	}
	defer net.Close()
	pixels := []float32{}
	for _, c := range image {
		pixels = append(pixels, map[rune]float32{'+': 0.5, '#': 1}[c])
	}
	if err := vdla.Write(net, "image", pixels); err != nil {
		return nil, err
	}
	if err := net.Run(); err != nil {
		return nil, err
	}
	return vdla.Output[float32](net, "logits")
}

func main() {
	scores, err := recognize()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	best := 0
	for n, score := range scores {
		if score > scores[best] {
			best = n
		}
	}
	fmt.Println("digit", best)
	for _, score := range scores {
		fmt.Println(score)
	}
}
