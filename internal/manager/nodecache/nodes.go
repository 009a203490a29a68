package nodecache

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Nodes lists and watches all nodes. They have their metadata without managed fields, their spec, and of their status
// the boot ID and the conditions without reason and message.
func Nodes(config *rest.Config) (cache.ListerWatcher, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	config.NegotiatedSerializer = negotiated{serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}}
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	nodes := func(options metav1.ListOptions) *rest.Request {
		return api.Get().Resource("nodes").VersionedParams(&options, scheme.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.NodeList{}
			return list, nodes(options).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			return nodes(options).Watch(ctx)
		},
	}, nil
}

// negotiated cuts received protobuf data before decoding.
type negotiated struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns those of the wrapped serializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	types := slices.Clone(n.NegotiatedSerializer.SupportedMediaTypes())
	for i := range types {
		if types[i].MediaType == runtime.ContentTypeProtobuf {
			types[i].Serializer = decoder{types[i].Serializer}
			stream := *types[i].StreamSerializer
			stream.Serializer = frames{stream.Serializer}
			types[i].StreamSerializer = &stream
		}
	}
	return types
}

// buffers are for cut data: decoded objects have copies.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// withCut calls use with the cut data, which is valid only until use returns.
func withCut(data []byte, use func(kept []byte) error) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	kept := cut(data, *buffer)
	if len(kept) < len(data) { // otherwise kept may be data itself
		*buffer = kept
	}
	return use(kept)
}

// frames decodes the frames of a watch. The wrapped serializer would copy the whole object of a frame.
type frames struct{ runtime.Serializer }

// Fields of a frame, and of the RawExtension of its object.
const (
	frameType   = 1
	frameObject = 2
	rawContent  = 1
)

// Decode decodes a frame, with its object cut.
func (f frames) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	frame, ok := into.(*metav1.WatchEvent)
	object := field(field(data, frameObject), rawContent)
	if !ok || object == nil {
		return f.Serializer.Decode(data, defaults, into)
	}
	err := withCut(object, func(kept []byte) error {
		*frame = metav1.WatchEvent{Type: string(field(data, frameType)), Object: runtime.RawExtension{Raw: bytes.Clone(kept)}}
		return nil
	})
	return frame, defaults, err
}

type decoder struct{ runtime.Serializer }

// Decode decodes the cut data.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (obj runtime.Object, kind *schema.GroupVersionKind, err error) {
	err = withCut(data, func(kept []byte) error {
		obj, kind, err = d.Serializer.Decode(kept, defaults, into)
		return err
	})
	return obj, kind, err
}

// Cache has all nodes of an informer.
type Cache struct{ store cache.Store }

// New returns the nodes in the store of an informer.
func New(store cache.Store) *Cache { return &Cache{store: store} }

// All returns the nodes of the cache at the time of the call, in no order. They are shared with the cache and read-only.
func (c *Cache) All() iter.Seq[*corev1.Node] {
	objs := c.store.List()
	return func(yield func(*corev1.Node) bool) {
		for _, obj := range objs {
			if !yield(obj.(*corev1.Node)) {
				return
			}
		}
	}
}
