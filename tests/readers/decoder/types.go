package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// description is one of nadmit's types: a kind, and what is in it.
type description struct {
	Kind   string       `json:"kind"`
	Of     *description `json:"of"`
	Fields []struct {
		Key  string      `json:"key"`
		Type description `json:"type"`
	} `json:"fields"`
}

// built is the Go type for a description, and how a value of it is printed: every field of a struct, also the empty ones.
// Integers are printed as strings, so that no reader of the output rounds them.
type built struct {
	goType reflect.Type
	show   func(reflect.Value) any
}

func build(from description) built {
	switch from.Kind {
	case "any":
		return built{reflect.TypeFor[any](), func(value reflect.Value) any { return showAny(value.Interface()) }}
	case "string":
		return built{reflect.TypeFor[string](), func(value reflect.Value) any { return value.String() }}
	case "bool":
		return built{reflect.TypeFor[bool](), func(value reflect.Value) any { return value.Bool() }}
	case "int":
		return built{reflect.TypeFor[int](), func(value reflect.Value) any { return strconv.FormatInt(value.Int(), 10) }}
	case "uint":
		return built{reflect.TypeFor[uint64](), showUint}
	case "uint32":
		return built{reflect.TypeFor[uint32](), showUint}
	case "text":
		return built{reflect.TypeFor[text](), func(value reflect.Value) any {
			if value.IsNil() {
				return nil
			}
			return string(value.Bytes())
		}}
	case "network":
		return built{reflect.TypeFor[network](), func(value reflect.Value) any { return value.String() }}
	case "pointer":
		inner := build(*from.Of)
		return built{reflect.PointerTo(inner.goType), func(value reflect.Value) any {
			if value.IsNil() {
				return nil
			}
			return inner.show(value.Elem())
		}}
	case "list":
		inner := build(*from.Of)
		return built{reflect.SliceOf(inner.goType), func(value reflect.Value) any {
			if value.IsNil() {
				return nil
			}
			list := []any{}
			for index := range value.Len() {
				list = append(list, inner.show(value.Index(index)))
			}
			return list
		}}
	case "map":
		inner := build(*from.Of)
		return built{reflect.MapOf(reflect.TypeFor[string](), inner.goType), func(value reflect.Value) any {
			if value.IsNil() {
				return nil
			}
			object := map[string]any{}
			for entries := value.MapRange(); entries.Next(); {
				object[entries.Key().String()] = inner.show(entries.Value())
			}
			return object
		}}
	case "fresh":
		return buildFresh(build(*from.Of))
	case "object":
		return buildStruct(from)
	}
	panic("no such kind: " + from.Kind)
}

func buildStruct(from description) built {
	var fields []reflect.StructField
	var inner []built
	for index, field := range from.Fields {
		inner = append(inner, build(field.Type))
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", index),
			Type: inner[index].goType,
			Tag:  reflect.StructTag(fmt.Sprintf("json:%q", field.Key)),
		})
	}
	return built{reflect.StructOf(fields), func(value reflect.Value) any {
		object := map[string]any{}
		for index, field := range from.Fields {
			object[field.Key] = inner[index].show(value.Field(index))
		}
		return object
	}}
}

func showUint(value reflect.Value) any { return strconv.FormatUint(value.Uint(), 10) }

// showAny prints a number by its bits: two programs need not write a float alike.
func showAny(value any) any {
	switch value := value.(type) {
	case float64:
		return fmt.Sprintf("float %016x", math.Float64bits(value))
	case []any:
		list := []any{}
		for _, element := range value {
			list = append(list, showAny(element))
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, element := range value {
			object[key] = showAny(element)
		}
		return object
	}
	return value
}

// text is decoded like net.IP: a slice with an UnmarshalText. What it makes of the text is not compared here.
type text []byte

func (t *text) UnmarshalText(data []byte) error {
	*t = bytes.Clone(data)
	if len(data) == 0 {
		*t = nil
	}
	return nil
}

// network is decoded like types.IPNet: by an UnmarshalJSON that wants a string, and is given null too.
type network string

func (n *network) UnmarshalJSON(data []byte) error {
	var decoded string
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	*n = network(decoded)
	return nil
}
