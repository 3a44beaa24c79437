// Package vdla runs a network that `vdla package --as static` or `--as shared` made, from Go 1.18 or
// newer with cgo. The folder that vdla wrote is this package, and the program links what is in it:
//
//	// #cgo LDFLAGS: -L${SRCDIR}/vdla -ldigits -lm -lpthread
//	// #include "vdla/digits.h"
//	import "C"
//	net, err := vdla.Open(C.digits_open)
//	defer net.Close()
//	err = vdla.Write(net, "image", make([]float32, 64)) // each input, before each run
//	err = net.Run()
//	scores, err := vdla.Output[float32](net, "logits")
//
// Outputs are copies. Of the list y, List[float32](net, "y") has the elements; net.Has("y") tells
// whether the optional output y is there. Elements are of Go's type that has their bytes: bool is
// uint8, float16 is uint16. Several goroutines may use several networks at once, and one network in
// turns.
package vdla

// #include <stdlib.h>
// #include "vdla.h"
//
// static int open_by(void *by, void *memory, size_t bytes, struct vdla **opened) {
//   typedef int opener(void *, size_t, const struct vdla_board *, struct vdla **);
//   return ((opener *)by)(memory, bytes, NULL, opened);
// }
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// Element is a type of elements.
type Element interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// Info is an input or output; where one output is a list, its shape begins with the length.
type Info struct {
	Name, Type string
	Shape      []int
}

// Array is an element of a list, row-major.
type Array[T Element] struct {
	Shape  []int
	Values []T
}

// Network is an open network; Close gives back its memory.
type Network struct {
	net     *C.struct_vdla
	memory  unsafe.Pointer
	counts  C.struct_vdla_description
	written map[string]bool
	isRun   bool
}

type tensor = C.struct_vdla_tensor

var types = strings.Fields(`bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32
	float64 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
	float4_e2m1fn int4 uint4 int2 uint2`) // of enum vdla_type

// Open opens a network by C.NAME_open, which its header has.
func Open(by unsafe.Pointer) (*Network, error) {
	n := &Network{written: map[string]bool{}}
	for bytes := C.size_t(4096); ; {
		C.free(n.memory)
		n.memory = C.aligned_alloc(64, (bytes+63)/64*64)
		status := C.open_by(by, n.memory, bytes, &n.net)
		if needed := C.vdla_memory(n.net); status == C.VDLA_BAD_MEMORY && needed > bytes {
			bytes = needed
			continue
		}
		if err := n.check(status); err != nil {
			C.free(n.memory)
			return nil, err
		}
		return n, n.check(C.vdla_describe(n.net, &n.counts))
	}
}

// Start has threads share the work, the caller's among them; once.
func (n *Network) Start(threads int) error {
	return n.check(C.vdla_start(n.net, C.uint32_t(threads)))
}

// Close ends threads and gives back the memory; the network is of no use then.
func (n *Network) Close() {
	if n.memory != nil {
		C.vdla_close(n.net)
		C.free(n.memory)
		n.memory, n.net = nil, nil
	}
}

// Inputs says what the inputs are.
func (n *Network) Inputs() []Info { return infos(n.inputs()) }

// Outputs says what the outputs are; of those in a list y[0], y[1] …
func (n *Network) Outputs() []Info { return infos(n.outputs()) }

// Write writes all elements of an input.
func Write[T Element](n *Network, name string, values []T) error {
	found, err := named(n.inputs(), "inputs", name, false)
	if err != nil {
		return err
	}
	count, own, kind := 1, stored(found[0]), fmt.Sprintf("%T", *new(T))
	for _, side := range shape(found[0]) {
		count *= side
	}
	if len(values) != count || kind != own {
		return fmt.Errorf("input %s: expected %s[%d], found %s[%d]", name, own, count, kind, len(values))
	}
	n.isRun = false
	copy(unsafe.Slice((*T)(found[0].data), count), values)
	n.written[name] = true
	return nil
}

// Run is one inference.
func (n *Network) Run() error {
	for _, input := range n.Inputs() {
		if !n.written[input.Name] {
			return fmt.Errorf("input %s: expected its elements before each run, found none", input.Name)
		}
	}
	n.written = map[string]bool{}
	err := n.check(C.vdla_run(n.net))
	n.isRun = err == nil
	return err
}

// Has tells whether the last run gave an output: it may leave out an optional one.
func (n *Network) Has(name string) (bool, error) {
	found, err := n.results(name, true)
	for _, each := range found {
		if each.data != nil || each.is_list != 0 {
			return true, nil
		}
	}
	return false, err
}

// Output copies an output's elements.
func Output[T Element](n *Network, name string) ([]T, error) {
	found, err := n.results(name, false)
	if err != nil {
		return nil, err
	}
	if found[0].data == nil || found[0].is_list != 0 {
		actual := map[bool]string{true: "a list", false: "none"}[found[0].is_list != 0]
		return nil, fmt.Errorf("output %s: expected an array, found %s", name, actual)
	}
	values, err := elements[T](found[0])
	return append([]T{}, values...), err
}

// List copies a list's elements, be they outputs y[0], y[1] … or in one output y.
func List[T Element](n *Network, name string) ([]Array[T], error) {
	made := []Array[T]{}
	found, err := n.results(name, true)
	for _, part := range found {
		if part.data == nil {
			continue
		}
		values, err := elements[T](part)
		if err != nil {
			return nil, err
		}
		sides, length := shape(part), 1
		if part.is_list != 0 {
			length, sides = sides[0], sides[1:]
		}
		for row := 0; row < length; row++ {
			each, kept := len(values)/length, append([]int{}, sides...)
			for axis := range kept {
				if part.sizes != nil {
					kept[axis] = int(unsafe.Slice(part.sizes, (row+1)*len(kept))[row*len(kept)+axis])
				}
			}
			made = append(made, Array[T]{kept, first(values[row*each:(row+1)*each], sides, kept)})
		}
	}
	return made, err
}

func (n *Network) check(status C.int) error {
	if status == C.VDLA_OK {
		return nil
	}
	return errors.New(C.GoString(C.vdla_error(n.net)))
}

func (n *Network) inputs() []tensor {
	made := make([]tensor, n.counts.inputs)
	for number := range made {
		C.vdla_input(n.net, C.uint32_t(number), &made[number])
	}
	return made
}

func (n *Network) outputs() []tensor {
	made := make([]tensor, n.counts.outputs)
	for number := range made {
		C.vdla_output(n.net, C.uint32_t(number), &made[number])
	}
	return made
}

func (n *Network) results(name string, lists bool) ([]tensor, error) {
	if !n.isRun {
		return nil, fmt.Errorf("output %s: expected a run after inputs are written, found none", name)
	}
	return named(n.outputs(), "outputs", name, lists)
}

// The input or output of a name, or those of a list: y, or y[0], y[1] …
func named(all []tensor, kind, name string, lists bool) (made []tensor, err error) {
	names := []string{}
	for _, each := range all {
		own := C.GoString(each.name)
		place := strings.TrimPrefix(own, name+"[")
		if own == name || lists && place != own && strings.Index(place, "]") == len(place)-1 {
			made = append(made, each)
		}
		names = append(names, own)
	}
	if len(made) == 0 {
		err = fmt.Errorf("%s: expected %s, found %s", kind, strings.Join(names, ", "), name)
	}
	return made, err
}

func infos(all []tensor) (made []Info) {
	for _, each := range all {
		made = append(made, Info{C.GoString(each.name), types[each._type], shape(each)})
	}
	return made
}

func shape(of tensor) []int {
	made := []int{}
	for _, side := range of.shape[:of.rank] {
		made = append(made, int(side))
	}
	return made
}

// The type of Go that has the bytes of elements.
func stored(of tensor) string {
	switch kind := of._type; {
	case kind == C.VDLA_FLOAT16 || kind == C.VDLA_BFLOAT16:
		return "uint16"
	case kind == C.VDLA_BOOL || kind > C.VDLA_BFLOAT16:
		return "uint8"
	default:
		return types[kind]
	}
}

func elements[T Element](of tensor) ([]T, error) {
	kind, own, name := fmt.Sprintf("%T", *new(T)), stored(of), C.GoString(of.name)
	if kind != own {
		return nil, fmt.Errorf("output %s: expected to be read as %s, found %s", name, own, kind)
	}
	return unsafe.Slice((*T)(of.data), uintptr(of.bytes)/unsafe.Sizeof(*new(T))), nil
}

// The elements of an array that are among the first ones along each axis.
func first[T Element](values []T, sides, kept []int) []T {
	made := []T{}
	for n, value := range values {
		isWithin := true
		for axis, rest := len(sides)-1, n; axis >= 0; axis, rest = axis-1, rest/sides[axis] {
			isWithin = isWithin && rest%sides[axis] < kept[axis]
		}
		if isWithin {
			made = append(made, value)
		}
	}
	return made
}
