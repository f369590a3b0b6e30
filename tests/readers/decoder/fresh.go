package main

import (
	"encoding/json"
	"reflect"
)

// fresh is decoded like types.Route and the IPAM config of whereabouts: by an UnmarshalJSON that decodes into a new variable
// and copies it. A type that is made at run time cannot have methods, so there is one of these for each, told apart by S.
type fresh[S slot] struct {
	Decoded reflect.Value
}

type slot interface{ number() int }

type (
	slot0 struct{}
	slot1 struct{}
	slot2 struct{}
	slot3 struct{}
)

func (slot0) number() int { return 0 }
func (slot1) number() int { return 1 }
func (slot2) number() int { return 2 }
func (slot3) number() int { return 3 }

var freshTypes = []reflect.Type{
	reflect.TypeFor[fresh[slot0]](), reflect.TypeFor[fresh[slot1]](),
	reflect.TypeFor[fresh[slot2]](), reflect.TypeFor[fresh[slot3]](),
}

// decodedTypes holds what is decoded in each slot.
var decodedTypes []reflect.Type

func (f *fresh[S]) UnmarshalJSON(data []byte) error {
	var slot S
	variable := reflect.New(decodedTypes[slot.number()])
	if err := json.Unmarshal(data, variable.Interface()); err != nil {
		return err
	}
	f.Decoded = variable.Elem()
	return nil
}

func buildFresh(inner built) built {
	number := -1
	for known, decoded := range decodedTypes {
		if decoded == inner.goType {
			number = known
		}
	}
	if number < 0 {
		number = len(decodedTypes)
		decodedTypes = append(decodedTypes, inner.goType)
	}
	return built{freshTypes[number], func(value reflect.Value) any {
		decoded := value.FieldByName("Decoded").Interface().(reflect.Value)
		if !decoded.IsValid() {
			decoded = reflect.Zero(inner.goType)
		}
		return inner.show(decoded)
	}}
}
