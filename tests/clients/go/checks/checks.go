// Package checks runs the checks of a client, each of which prints its name and how it went.
package checks

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

const waitLimit = 30 * time.Second

// Check is one group of calls; whatever it panics with is its failure.
type Check struct {
	Name string
	Run  func()
}

// Run prints a line for each check, in their order.
func Run(all []Check) {
	for _, one := range all {
		fmt.Printf("%s\t%s\n", one.Name, outcome(one.Run))
	}
}

func outcome(run func()) (result string) {
	defer func() {
		if failure := recover(); failure != nil {
			result = strings.NewReplacer("\n", " ", "\t", " ").Replace(fmt.Sprint(failure))
		}
	}()
	run()
	return "passed"
}

// Must ends the check with an error, if there is one.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Got gives the value of a call that has to succeed.
func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// Equal ends the check unless both are the same, contents included.
func Equal(wanted, found any) {
	if !reflect.DeepEqual(wanted, found) {
		panic(fmt.Sprintf("wanted %v, found %v", wanted, found))
	}
}

// True ends the check with what should be so.
func True(so bool, what string) {
	if !so {
		panic("not so: " + what)
	}
}

// Wait returns as soon as something is so.
func Wait(so func() bool, what string) {
	for deadline := time.Now().Add(waitLimit); !so(); time.Sleep(20 * time.Millisecond) {
		True(time.Now().Before(deadline), what)
	}
}
