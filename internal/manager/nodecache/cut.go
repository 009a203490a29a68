package nodecache

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

// message describes which fields of a protobuf message are kept: drops are removed, parts are reduced, all others are
// kept.
type message struct {
	drops fields
	parts [16]*message
	// whole, if not nil, reports whether a message is kept as a whole.
	whole func(msg []byte) bool
}

// fields is a set of field numbers.
type fields uint64

func numbers(all ...protowire.Number) fields {
	set := fields(0)
	for _, n := range all {
		set |= 1 << n
	}
	return set
}

func (f fields) has(n protowire.Number) bool { return n < 64 && f>>n&1 == 1 }

// part returns the description of a field; nil if it has none.
func (m *message) part(n protowire.Number) *message {
	if int(n) < len(m.parts) {
		return m.parts[n]
	}
	return nil
}

// The numbers are those of generated.proto of k8s.io/api and k8s.io/apimachinery, which never change.
var (
	annotation = &message{drops: numbers(1, 2), whole: needed} // key and value
	metadata   = &message{
		drops: numbers(17), // managedFields
		parts: [16]*message{12: annotation},
	}
	reported = &message{drops: numbers(5, 6)}                               // reason and message
	system   = &message{drops: numbers(1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)} // all but bootID
	status   = &message{
		drops: numbers(1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 14), // all but conditions and nodeInfo
		parts: [16]*message{4: reported, 7: system},
	}
	node = &message{parts: [16]*message{1: metadata, 3: status}}
	list = &message{parts: [16]*message{2: node}}

	// envelopes are the descriptions of envelopes, by the kind of their object.
	envelopes = map[string]*message{"Node": envelope(node), "NodeList": envelope(list)}
)

// envelope describes an envelope with this body.
func envelope(body *message) *message {
	return &message{parts: [16]*message{envelopeBody: body}}
}

// needed reports whether an annotation is needed for decisions, or marks the end of the initial events of a watch. Other
// annotations are kept without key and value: a node without annotations must differ from a node with annotations of
// other clients.
func needed(annotation []byte) bool {
	key := field(annotation, 1)
	return noderule.IsOurs(key) || string(key) == metav1.InitialEventsAnnotationKey
}

// Fields of the envelope of an object, and of its TypeMeta.
const (
	envelopeType = 1
	envelopeBody = 2
	typeVersion  = 1
	typeKind     = 2
)

// magic is the prefix of an object in protobuf.
var magic = []byte("k8s\x00")

// cut returns the data of an object without the fields that are not needed. It returns data of an unknown kind, or that
// cannot be parsed, unchanged: the decoder then returns the error. The result may use the buffer.
func cut(data, buffer []byte) []byte {
	content, ok := bytes.CutPrefix(data, magic)
	if !ok {
		return data
	}
	kept := envelopeOf(content)
	if kept == nil {
		return data
	}
	out, ok := kept.append(append(buffer[:0], magic...), content)
	if !ok {
		return data
	}
	return out
}

// envelopeOf returns the description of an envelope with this content; nil if its kind is not known.
func envelopeOf(content []byte) *message {
	header := field(content, envelopeType)
	if string(field(header, typeVersion)) != "v1" {
		return nil
	}
	return envelopes[string(field(header, typeKind))]
}

// field returns the content of the first field of a message with this number; nil if it has none.
func field(msg []byte, number protowire.Number) []byte {
	for len(msg) > 0 {
		n, kind, value, size := next(msg)
		if size < 0 {
			return nil
		}
		if n == number && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(value)
			return content
		}
		msg = msg[size:]
	}
	return nil
}

// next returns the first field of a message: its number, its type, its value, and its size including the tag. The size is
// negative if the field cannot be parsed.
func next(msg []byte) (number protowire.Number, kind protowire.Type, value []byte, size int) {
	number, kind, tag := protowire.ConsumeTag(msg)
	if tag < 0 {
		return 0, 0, nil, tag
	}
	length := protowire.ConsumeFieldValue(number, kind, msg[tag:])
	if length < 0 {
		return 0, 0, nil, length
	}
	return number, kind, msg[tag : tag+length], tag + length
}

// append appends the kept part of a message. It returns false if the message cannot be parsed.
func (m *message) append(out, msg []byte) ([]byte, bool) {
	if m.whole != nil && m.whole(msg) {
		return append(out, msg...), true
	}
	for len(msg) > 0 {
		number, kind, value, size := next(msg)
		if size < 0 {
			return nil, false
		}
		part := m.part(number)
		switch {
		case m.drops.has(number):
		case part != nil && kind == protowire.BytesType:
			content, _ := protowire.ConsumeBytes(value)
			var ok bool
			if out, ok = part.appendPart(protowire.AppendTag(out, number, kind), content); !ok {
				return nil, false
			}
		default:
			out = append(out, msg[:size]...)
		}
		msg = msg[size:]
	}
	return out, true
}

// appendPart appends the kept part of a message, prefixed by its length.
func (m *message) appendPart(out, msg []byte) ([]byte, bool) {
	begin := len(out)
	out = protowire.AppendVarint(out, uint64(len(msg))) // reserve space: the final length is not longer
	content := len(out)
	out, ok := m.append(out, msg)
	if !ok {
		return nil, false
	}
	size := len(out) - content
	moved := protowire.AppendVarint(out[:begin], uint64(size)) //nolint:gosec // it is a length
	if len(moved) < content {
		copy(out[len(moved):], out[content:])
	}
	return out[:len(moved)+size], true
}
