package manager

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapper returns this error for each lookup; nil: the kind exists.
type mapper struct {
	meta.RESTMapper
	err error
}

func (m *mapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, m.err
}

func TestOnlyAFailedLookupOfPodReadinessRuleIsUnhealthy(t *testing.T) {
	cluster := &mapper{}
	lookup := &podsLookup{mapper: cluster}
	for _, step := range []struct {
		err                error
		installed, healthy bool
	}{
		{&meta.NoKindMatchError{}, false, true},
		{errors.New("connection refused"), false, false},
		{&meta.NoKindMatchError{}, false, true},
		{errors.New("connection refused"), false, false},
		{nil, true, true},
	} {
		cluster.err = step.err
		installed, err := lookup.installed(t.Context())
		if err != nil || installed != step.installed {
			t.Errorf("%v: installed is %v, and the error %v", step.err, installed, err)
		}
		if err := lookup.check(nil); (err == nil) != step.healthy || err != nil && !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%v: the health check returns %v", step.err, err)
		}
	}
}
