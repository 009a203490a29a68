package mutatingpolicy_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/mutatingpolicy"
)

// apiServer serves one policy, in some versions.
type apiServer struct {
	mu sync.Mutex
	// serves are the versions whose list of resources contains policies, and lists those with a list.
	serves, lists map[string]bool
	policy        map[string]any
	requests      []string
	// onPolicy is called before a request for the policy.
	onPolicy func()
}

const resources = "mutatingadmissionpolicies"

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/"), "/")
	version := path[0]
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	notFound := apierrors.NewNotFound(admissionv1.Resource(resources), "x").Status()
	switch {
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		answer(http.StatusNotFound, notFound)
	case len(path) == 1:
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: admissionv1.GroupName + "/" + version}
		if s.serves[version] {
			list.APIResources = []metav1.APIResource{{Name: resources, Kind: "MutatingAdmissionPolicy"}}
		}
		if !s.serves[version] && !s.lists[version] {
			answer(http.StatusNotFound, notFound)
			return
		}
		answer(http.StatusOK, list)
	default:
		s.requests = append(s.requests, r.Method+" "+version)
		if s.onPolicy != nil {
			s.onPolicy()
		}
		if !s.serves[version] {
			answer(http.StatusNotFound, notFound)
			return
		}
		if r.Method == http.MethodPut {
			s.policy = map[string]any{}
			_ = json.NewDecoder(r.Body).Decode(&s.policy)
		}
		s.policy["apiVersion"] = admissionv1.GroupName + "/" + version
		answer(http.StatusOK, s.policy)
	}
}

func newClient(t *testing.T, s *apiServer) client.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, version := range mutatingpolicy.Versions {
		mapper.Add(schema.GroupVersionKind{Group: admissionv1.GroupName, Version: version, Kind: "MutatingAdmissionPolicy"}, meta.RESTScopeRoot)
	}
	c, err := mutatingpolicy.NewClient(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func stored() map[string]any {
	return map[string]any{"kind": "MutatingAdmissionPolicy", "metadata": map[string]any{
		"name": "x", "resourceVersion": "7", "uid": "u", "labels": map[string]any{"a": "b"}, "finalizers": []any{"example.com/f"}, "generation": 3,
	}, "spec": map[string]any{"reinvocationPolicy": "Never", "variables": []any{map[string]any{"name": "v", "expression": "1"}}}}
}

func TestPoliciesAreReadAndWrittenInTheServedVersion(t *testing.T) {
	for _, version := range mutatingpolicy.Versions {
		t.Run(version, func(t *testing.T) {
			s := &apiServer{serves: map[string]bool{version: true}, lists: map[string]bool{"v1": true}, policy: stored()}
			c := newClient(t, s)
			policy := &admissionv1.MutatingAdmissionPolicy{}
			policy.Annotations = map[string]string{"old": "gone after a read"}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, policy); err != nil {
				t.Fatal(err)
			}
			if policy.ResourceVersion != "7" || policy.Labels["a"] != "b" || policy.Finalizers[0] != "example.com/f" || policy.Generation != 3 ||
				policy.Spec.Variables[0].Name != "v" || len(policy.Annotations) > 0 {
				t.Errorf("read as %+v", policy)
			}
			policy.Spec.Variables[0].Expression = "2"
			if err := c.Update(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			written, _ := json.Marshal(s.policy)
			for _, part := range []string{`"resourceVersion":"7"`, `"uid":"u"`, `"labels":{"a":"b"}`, `"expression":"2"`, "example.com/f", admissionv1.GroupName + "/" + version} {
				if !strings.Contains(string(written), part) {
					t.Errorf("written without %s: %s", part, written)
				}
			}
			if policy.Spec.Variables[0].Expression != "2" {
				t.Errorf("after the update: %+v", policy)
			}
		})
	}
}

func TestAClusterThatServesNoPolicies(t *testing.T) {
	c := newClient(t, &apiServer{lists: map[string]bool{"v1": true}})
	err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, &admissionv1.MutatingAdmissionPolicy{})
	if !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want that the kind is not served", err)
	}
}

// Discovery is answered by an API server of the old version, and the request by one of the new version.
func TestTheServedVersionChangesBetweenDiscoveryAndRequest(t *testing.T) {
	s := &apiServer{serves: map[string]bool{"v1beta1": true}, policy: stored()}
	s.onPolicy = func() { s.serves = map[string]bool{"v1": true} }
	c := newClient(t, s)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, &admissionv1.MutatingAdmissionPolicy{}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(s.requests, ", "); got != "GET v1beta1, GET v1" {
		t.Errorf("requests: %s", got)
	}
}
