package uninstall_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/manager/uninstall"
)

func TestFlagErrorsNameTheFlagAndAValidExample(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"what becomes of rules":            {[]string{"--rules=drop"}, []string{`--rules is "drop"`, "e.g. --rules=keep"}},
		"labels that are none":             {[]string{"--reporters=a=b=c"}, []string{`--reporters is "a=b=c"`, "e.g. --reporters="}},
		"labels of agents that are none":   {[]string{"--agents=a=b=c"}, []string{`--agents is "a=b=c"`, "e.g. --agents="}},
		"no Deployment":                    {[]string{"--deployment="}, []string{"--deployment is empty", "e.g. --deployment=readygate-manager"}},
		"a condition of Kubernetes":        {[]string{"--conditions=example.com/A,Ready"}, []string{`--conditions has "Ready"`, "e.g. --conditions="}},
		"a condition without a type":       {[]string{"--conditions=example.com/A,"}, []string{`--conditions has ""`}},
		"no time to settle":                {[]string{"--policy-settle-time=-1s"}, []string{"--policy-settle-time is -1s", "e.g. --policy-settle-time=5s"}},
		"no time but to settle":            {[]string{"--timeout=5s"}, []string{"--timeout is 5s", "longer than --policy-settle-time"}},
		"no namespace outside of a pod":    {nil, []string{"--namespace is required outside of a cluster", "e.g. --namespace=readygate-system"}},
		"a kubeconfig that is not there":   {[]string{"--namespace=a", "--kubeconfig=/does/not/exist"}, []string{"--kubeconfig", "/does/not/exist"}},
		"a selector of nothing is no typo": {[]string{"--reporters=", "--namespace=a", "--kubeconfig=/does/not/exist"}, []string{"/does/not/exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			options := uninstall.NewOptions()
			options.Out = &bytes.Buffer{}
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
