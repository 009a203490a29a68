package nodecache

import "k8s.io/apimachinery/pkg/runtime"

// Cut is cut with a new buffer.
func Cut(data []byte) []byte { return cut(data, nil) }

// Through is the serializer, with cutting before it.
func Through(s runtime.Serializer) runtime.Serializer { return decoder{s} }

// Frames is the serializer of a watch's frames, with cutting before it.
func Frames(s runtime.Serializer) runtime.Serializer { return frames{s} }
