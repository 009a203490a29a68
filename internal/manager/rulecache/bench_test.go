package rulecache_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/manager/rulecache"
)

// The cached rulebook is read for each node event and each reconcile. A reader without a version is listed each time.
func BenchmarkCurrent(b *testing.B) {
	for _, count := range []int{1, 5, 100} {
		rulesCache, _ := startCache(b, rules(count)...)
		for _, way := range []struct {
			name   string
			reader client.Reader
		}{{"unchanged", rulesCache}, {"listing", struct{ client.Reader }{rulesCache}}} {
			cached := rulecache.New(way.reader)
			b.Run(fmt.Sprintf("rules=%d/%s", count, way.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					current(b, cached)
				}
			})
		}
	}
}
