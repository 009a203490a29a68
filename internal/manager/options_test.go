package manager_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/manager"
)

// The flags that existing deployments use exist, with their defaults and a usage text.
func TestFlags(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	manager.NewOptions().AddFlags(flags)
	for name, def := range map[string]string{
		"metrics-bind-address": "0", "metrics-secure": "false", "metrics-cert-dir": "", "health-probe-bind-address": ":8081",
		"pprof-bind-address": "", "leader-elect": "false", "leader-election-namespace": "", "leader-election-peer-namespaces": "[nrr-system]", "kube-api-qps": "-1", "kube-api-burst": "-1",
		"node-concurrent-reconciles": "16", "rule-concurrent-reconciles": "4", "kubeconfig": "", "api-server-request-timeout": "1m0s",
	} {
		flag := flags.Lookup(name)
		if flag == nil {
			t.Errorf("--%s is missing", name)
		} else if flag.DefValue != def || flag.Usage == "" {
			t.Errorf("--%s is %q by default, want %q; help: %s", name, flag.DefValue, def, flag.Usage)
		}
	}
}

func TestFlagErrorsNameTheFlagAndAValidExample(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no workers":                     {[]string{"--node-concurrent-reconciles=0"}, []string{"--node-concurrent-reconciles is 0", "e.g. --node-concurrent-reconciles=16"}},
		"no rule workers":                {[]string{"--rule-concurrent-reconciles=-1"}, []string{"--rule-concurrent-reconciles is -1", "at least 1"}},
		"a burst of 0":                   {[]string{"--kube-api-qps=5", "--kube-api-burst=0"}, []string{"--kube-api-burst is 0", "--kube-api-burst=200"}},
		"secure metrics that are off":    {[]string{"--metrics-secure"}, []string{"--metrics-secure", "--metrics-bind-address=:8443"}},
		"no certificate":                 {[]string{"--metrics-bind-address=127.0.0.1:0", "--metrics-secure", "--metrics-cert-dir=/does/not/exist"}, []string{"--metrics-cert-dir", "tls.crt"}},
		"a peer that is no namespace":    {[]string{"--leader-election-peer-namespaces=nrr-system,Nrr_System"}, []string{`--leader-election-peer-namespaces has "Nrr_System"`, "e.g. --leader-election-peer-namespaces=nrr-system", "lower case"}},
		"a peer without a name":          {[]string{"--leader-election-peer-namespaces=a,"}, []string{`--leader-election-peer-namespaces has ""`}},
		"no request timeout":             {[]string{"--api-server-request-timeout=0"}, []string{"--api-server-request-timeout is 0s", "between 1s and 5m0s", "e.g. --api-server-request-timeout=60s"}},
		"a request timeout of an hour":   {[]string{"--api-server-request-timeout=1h"}, []string{"--api-server-request-timeout is 1h0m0s", "between 1s and 5m0s"}},
		"a rate of 0":                    {[]string{"--kube-api-qps=0"}, []string{"--kube-api-qps is 0"}},
		"certificates for plain HTTP":    {[]string{"--metrics-cert-dir=/certs"}, []string{"--metrics-cert-dir", "add --metrics-secure"}},
		"a kubeconfig that is not there": {[]string{"--kubeconfig=/does/not/exist"}, []string{"--kubeconfig", "/does/not/exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			options := manager.NewOptions()
			options.AddFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := options.Run(t.Context())
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}
