// Reads expressions of PromQL, one a line, and prints for each the metrics it is about. One that Prometheus would not take ends it.
// With arguments, an expression and files with metrics as a server shows them, it prints what the expression results in.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if len(os.Args) > 1 {
		if err := evaluate(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
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
