// Reads expressions of PromQL, one a line, and prints for each the metrics it is about. One that Prometheus would not take ends it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		expression, err := parser.ParseExpr(lines.Text())
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", lines.Text(), err)
			os.Exit(1)
		}
		var names []string
		for _, selectors := range parser.ExtractSelectors(expression) {
			for _, matcher := range selectors {
				if matcher.Name == "__name__" {
					names = append(names, matcher.Value)
				}
			}
		}
		fmt.Println(strings.Join(names, " "))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
