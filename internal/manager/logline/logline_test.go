package logline_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/readygate/readygate/internal/manager/logline"
)

func logger(to io.Writer) logr.Logger {
	return zap.New(zap.WriteTo(to), zap.RawZapOpts(uberzap.AddCaller()))
}

// say writes lines in all ways there are. What a reader of logs searches for must not depend on
// who keeps the values.
func say(l logr.Logger) {
	l.Info("plain", "a", 1)
	node := l.WithName("readygate").WithValues("controller", "node", "Node", klog.KRef("", "n1"))
	one, two := node.WithValues("reconcileID", "one"), node.WithValues("reconcileID", "two")
	one.Info("first", "changes", []string{"x", "y"})
	two.Error(errors.New("no"), "second", "rules", []string{"r"})
	node.Info("neither")
	l.WithCallDepth(1).WithName("deep").Info("of the one who called")
	l.WithValues("odd").Info("half a pair", "key", "value")
	l.WithValues("a", 1).WithValues(2, 3).WithValues("b", 4).Info("no name", "key", "value")
	l.V(1).Info("not written")
}

func TestLinesAreTheSame(t *testing.T) {
	var plain, lazy bytes.Buffer
	for _, l := range []logr.Logger{logger(&plain), logline.Lazy(logger(&lazy))} {
		say(l)
	}
	want, got := timeless(plain.String()), timeless(lazy.String())
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, part := range []string{`"reconcileID":"one"`, `"reconcileID":"two"`, `"Node":{"name":"n1"}`, "logline_test.go"} {
		if !strings.Contains(got, part) {
			t.Errorf("no line has %s:\n%s", part, got)
		}
	}
}

func timeless(lines string) string {
	return regexp.MustCompile(`"ts":"[^"]*",`).ReplaceAllString(lines, "")
}

// What a reconcile costs that says nothing.
func BenchmarkReconcileWithoutALine(b *testing.B) {
	for name, l := range map[string]logr.Logger{"eager": logger(io.Discard), "lazy": logline.Lazy(logger(io.Discard))} {
		b.Run(name, func(b *testing.B) {
			l = l.WithValues("controller", "node", "controllerGroup", "", "controllerKind", "Node")
			b.ReportAllocs()
			for b.Loop() {
				reconcile := l.WithValues("Node", klog.KRef("", "n1")).WithValues("namespace", "", "name", "n1").WithValues("reconcileID", "1")
				reconcile.V(5).Info("Reconciling")
			}
		})
	}
}
