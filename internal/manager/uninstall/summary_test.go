package uninstall

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSummaryListsWhatIsRemovedKeptAndNotDone(t *testing.T) {
	var s summary
	s.removed("taints", 2)
	s.removed("records", 0)
	s.removed("taints", 1)
	s.stays("rules: on purpose")
	s.stays("rules: on purpose")
	var out strings.Builder
	s.print(&out, errors.New("nodes: a\nrules: b"))
	want := "Removed:\n  taints: 3\nStays:\n  rules: on purpose\nNot done:\n  nodes: a\n  rules: b\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// Of many failures some are named and all are counted, and the error matches a rejection among them.
func TestFailuresAreNamed(t *testing.T) {
	var f failures
	if f.add("fine", nil); f.err("nodes") != nil {
		t.Fatal("nothing failed")
	}
	for i := range 12 {
		f.add(fmt.Sprintf("n%d", i), apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no")))
	}
	err := f.err("nodes")
	if text := err.Error(); !strings.HasPrefix(text, "12 nodes: n0: ") || !strings.HasSuffix(text, "and 2 more") {
		t.Error(text)
	}
	if !isRefusal(err) {
		t.Error("the error does not match the rejection")
	}
}
