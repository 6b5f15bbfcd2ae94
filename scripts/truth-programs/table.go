package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	m := map[int]int{}
	for r := 0; r < 3; r++ {
		for i := 0; i < count; i++ {
			m[i*7919%(count+3)] += i
		}
	}
	fmt.Println(len(m), m[7])
}
