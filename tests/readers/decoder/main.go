// Command decoder decodes CNI configs with Go's own encoding/json into structs that are described to it, and prints what
// each struct holds then.
//
// The first line of standard input is a JSON list of type descriptions, see types.go. Every other line is a config:
//
//	{"type": 0, "reading": "copy", "config": "{...}"}
//
// "text" decodes the config itself, as Multus does. "copy" first passes it through a map, as libcni does for a plugin. For
// each of them one line is printed: {"value": ...} or {"error": "..."}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
)

type request struct {
	Type    int    `json:"type"`
	Reading string `json:"reading"`
	Config  string `json:"config"`
}

type answer struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "decoder:", err)
		os.Exit(1)
	}
}

func run() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	decoder := json.NewDecoder(in)
	var descriptions []description
	if err := decoder.Decode(&descriptions); err != nil {
		return fmt.Errorf("reading the types: %w", err)
	}
	var types []built
	for _, description := range descriptions {
		types = append(types, build(description))
	}
	printer := json.NewEncoder(out)
	for decoder.More() {
		var request request
		if err := decoder.Decode(&request); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		if err := printer.Encode(decode(types[request.Type], request)); err != nil {
			return err
		}
	}
	return out.Flush()
}

func decode(built built, request request) answer {
	data := []byte(request.Config)
	if request.Reading == "copy" {
		var copied map[string]any
		if err := json.Unmarshal(data, &copied); err != nil {
			return answer{Error: err.Error()}
		}
		var err error
		if data, err = json.Marshal(copied); err != nil {
			return answer{Error: err.Error()}
		}
	}
	variable := reflect.New(built.goType)
	if err := json.Unmarshal(data, variable.Interface()); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Value: built.show(variable.Elem())}
}
