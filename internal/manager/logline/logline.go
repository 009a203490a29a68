// Package logline avoids the cost of log lines that are not written.
package logline

import (
	"slices"

	"github.com/go-logr/logr"
)

// Lazy is a logger that writes the same lines. Values that it is given it keeps as they are, and
// hands over with a line: every reconcile makes a logger with some, and most of them say nothing.
func Lazy(logger logr.Logger) logr.Logger {
	return logger.WithSink(sink{next: logger.WithCallDepth(1).GetSink()})
}

// sink is one whose values wait for a line. They must not change meanwhile.
type sink struct {
	next   logr.LogSink
	values []any
}

var _ logr.CallDepthLogSink = sink{}

// Init has nothing to do: the next sink is ready.
func (sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool { return s.next.Enabled(level) }

func (s sink) Info(level int, msg string, values ...any) {
	s.next.Info(level, msg, slices.Concat(s.values, values)...)
}

func (s sink) Error(err error, msg string, values ...any) {
	s.next.Error(err, msg, slices.Concat(s.values, values)...)
}

// WithValues keeps pairs. What is none would take the line's own values for its other half, so the
// next sink has to deal with it now.
func (s sink) WithValues(values ...any) logr.LogSink {
	if !pairs(values) {
		return sink{next: s.next.WithValues(s.values...).WithValues(values...)}
	}
	return sink{next: s.next, values: slices.Concat(s.values, values)}
}

// pairs says whether these are names, each with a value behind it.
func pairs(values []any) bool {
	for i := 0; i < len(values); i += 2 {
		if _, ok := values[i].(string); !ok {
			return false
		}
	}
	return len(values)%2 == 0
}

func (s sink) WithName(name string) logr.LogSink {
	return sink{next: s.next.WithName(name), values: s.values}
}

func (s sink) WithCallDepth(depth int) logr.LogSink {
	deeper, ok := s.next.(logr.CallDepthLogSink)
	if !ok {
		return s
	}
	return sink{next: deeper.WithCallDepth(depth), values: s.values}
}
