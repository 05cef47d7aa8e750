package main

import (
	"bufio"
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/api/resource"
)

// readQuantities reads a JSON string from each line. It prints the string with the two numbers that the API parses
// from it and the scheduler adds up: the thousandths and the whole units. Both are null if the string is no quantity.
func readQuantities(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			return err
		}
		line := []any{text, nil, nil}
		var quantity resource.Quantity
		if err := json.Unmarshal(lines.Bytes(), &quantity); err == nil {
			line = []any{text, quantity.MilliValue(), quantity.Value()}
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return lines.Err()
}
