package lint_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/testenv/manifest"
)

// lint validates with the schema and the CEL rules of the CRD, by the API server's own code. These tests show each
// rule of the CRD; test/integration shows on an API server that every kind of rule (type, enum, bound, list key,
// format, CEL, transition) has the same effect there.

// maxMessage is the maximum length of a message in bytes: a huge value is not repeated.
const maxMessage = 4096

var index = regexp.MustCompile(`\.(\d+)`)

// rejections lists values of one field that are rejected with the same message.
type rejections struct {
	path    string         // of the edited field
	message string         // a part of the error
	values  []string       // in YAML
	field   string         // that the error names; that of path if empty
	with    manifest.Edits // other edits
}

// text returns YAML values that are exactly these texts.
func text(texts ...string) []string {
	values := make([]string, len(texts))
	for i, text := range texts {
		values[i] = manifest.Text(text)
	}
	return values
}

func wantRejected(t *testing.T, all ...rejections) {
	t.Helper()
	for _, r := range all {
		field := r.field
		if field == "" {
			field = index.ReplaceAllString(r.path, "[$1]")
		}
		for _, value := range r.values {
			report := check(t, string(r.with.And(manifest.Edits{r.path: value}).Rule(t, "network")))
			if err := findingOf(report.Findings, field, r.message); err != "" {
				t.Errorf("%s: %.80s: %s", r.path, value, err)
			}
		}
	}
}

// findingOf returns what is wrong with findings that should have an error of the field that contains the message.
func findingOf(findings []lint.Finding, field, message string) string {
	var got []string
	for _, f := range findings {
		switch {
		case len(f.Message) > maxMessage:
			return "the message is too long: " + f.Message[:maxMessage]
		case f.Severity == lint.Error && f.Field == field && strings.Contains(f.Message, message):
			return ""
		}
		got = append(got, f.Field+": "+f.Message)
	}
	return "want " + field + ": " + message + ", got\n" + strings.Join(got, "\n")
}

// wantAccepted checks that there is no error, and that the core holds a node with these labels until the
// conditions of the rule are met.
func wantAccepted(t *testing.T, cases map[string]manifest.Edits, labels map[string]string) {
	t.Helper()
	for name, edits := range cases {
		t.Run(name, func(t *testing.T) {
			report := check(t, string(edits.Rule(t, "network")))
			if report.Count(lint.Error) > 0 || len(report.Rules) != 1 {
				t.Fatal(strings.Join(lines(report, lint.Error), "\n"))
			}
			rule := report.Rules[0]
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", Labels: labels}}
			if planned := taintsOf(rule, node); !slices.ContainsFunc(planned, carries(rule)) {
				t.Errorf("not held: %v", planned)
			}
			for _, c := range rule.Spec.Conditions {
				node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(c.Type), Status: c.RequiredStatus})
			}
			if planned := taintsOf(rule, node); len(planned) > 0 {
				t.Errorf("not released: %v", planned)
			}
		})
	}
}

func taintsOf(rule *v1alpha1.NodeReadinessRule, n *corev1.Node) []corev1.Taint {
	node := noderule.NodeOf(n)
	return noderule.NewRulebook([]*v1alpha1.NodeReadinessRule{rule}).Plan(node, time.Now()).Apply(node).Taints
}

func carries(rule *v1alpha1.NodeReadinessRule) func(corev1.Taint) bool {
	return func(taint corev1.Taint) bool {
		want := rule.Spec.Taint
		return taint.Key == want.Key && taint.Value == want.Value && taint.Effect == want.Effect
	}
}
