package check_test

import (
	"net"
	"testing"

	"github.com/readygate/readygate/internal/reporter/check"
)

func TestTCP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		address func(t testing.TB) string
		want    func(address string) check.Observation
		hangs   bool
	}{
		"an accepted connection": {
			address: func(t testing.TB) string { return accept(t, hang) },
			want:    func(a string) check.Observation { return answers(a + " accepts connections") },
		},
		"also if it hangs up at once": {
			address: func(t testing.TB) string { return accept(t, func(net.Conn) {}) },
			want:    func(a string) check.Observation { return answers(a + " accepts connections") },
		},
		"no listener": {
			address: refused,
			want:    func(a string) check.Observation { return noAnswer(a + ": connection refused") },
		},
		"packets are dropped": {
			address: blackhole,
			want:    func(a string) check.Observation { return noAnswer(a + ": no response within 300ms") },
			hangs:   true,
		},
		"unknown name": {
			address: func(testing.TB) string { return "unknown.invalid:80" },
			want: func(a string) check.Observation {
				return noAnswer(a + ": the name unknown.invalid is unknown")
			},
		},
		"the name server does not answer": {
			address: func(testing.TB) string { return "silent.invalid:80" },
			want: func(a string) check.Observation {
				return noAnswer(a + ": the name silent.invalid cannot be looked up")
			},
			hangs: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, timeout := test.address(t), long
			if test.hangs {
				timeout = brief
			}
			c := made(t, check.Spec{TCP: &check.TCP{Address: address}}, check.Env{Timeout: timeout})
			for range 3 {
				expect(t, ran(t, c, timeout), test.want(address))
			}
		})
	}
}
