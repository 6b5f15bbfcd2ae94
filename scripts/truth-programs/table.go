package main

import "fmt"

func main() {
	m := map[int]int{}
	for r := 0; r < 3; r++ {
		for i := 0; i < 1000000; i++ {
			m[i*7919%1000003] += i
		}
	}
	fmt.Println(len(m), m[7])
}
