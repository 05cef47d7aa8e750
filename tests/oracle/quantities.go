package main

import (
	"bufio"
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/api/resource"
)

// readQuantities prints what the API reads from each line, a JSON string: the thousandths and
// the whole units that the scheduler sums, or null for both when it is no quantity.
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
