package sieve

import (
	"context"
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

// Nodes lists and watches all nodes. They have their metadata but for managed fields, their spec,
// and of their status the conditions, without reasons and messages.
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

// negotiated lets what comes in protobuf through the sieve.
type negotiated struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes are those of the other serializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	types := slices.Clone(n.NegotiatedSerializer.SupportedMediaTypes())
	for i := range types {
		if types[i].MediaType == runtime.ContentTypeProtobuf {
			types[i].Serializer = decoder{types[i].Serializer}
		}
	}
	return types
}

type decoder struct{ runtime.Serializer }

// buffers are for what is kept: objects that are decoded from it have copies.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Decode decodes what is kept of the data.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	kept := cut(data, *buffer)
	if len(kept) < len(data) { // else it may be the caller's own
		*buffer = kept
	}
	return d.Serializer.Decode(kept, defaults, into)
}
