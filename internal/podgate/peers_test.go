package podgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/readygate/readygate/internal/core/agents"
)

// leaseOf is the lease of a node's agent that tells this address.
func leaseOf(t *testing.T, node, address string, renewed time.Time) *coordinationv1.Lease {
	t.Helper()
	report, err := json.Marshal(agents.Report{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: agents.Namespace, Name: agents.Name(node), Labels: agents.Labels(), Annotations: map[string]string{agents.ReportAnnotation: string(report)}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

// Peers are the agents of other nodes that have been heard lately and can be asked.
func TestWhoIsAPeer(t *testing.T) {
	api := fake.NewClientset()
	foreign := leaseOf(t, "n6", "http://10.1.0.6:9479", time.Now())
	foreign.Labels = nil
	for _, lease := range []*coordinationv1.Lease{
		leaseOf(t, "n1", "http://10.1.0.1:9479", time.Now()), // itself
		leaseOf(t, "n2", "http://10.1.0.2:9479", time.Now()),
		leaseOf(t, "n3", "http://10.1.0.3:9479", time.Now().Add(-time.Hour)), // gone
		leaseOf(t, "n4", "", time.Now()),                                     // not to be asked
		leaseOf(t, "n5", "http://127.0.0.1:9479", time.Now()),
		foreign,
		leaseOf(t, "n7", "http://10.1.0.7:9479", time.Now().Add(time.Minute)), // its clock is ahead
	} {
		if err := api.Tracker().Add(lease); err != nil {
			t.Fatal(err)
		}
	}
	got, err := (&peers{api: api, node: "n1"}).addresses(t.Context())
	slices.Sort(got)
	if want := []string{"http://10.1.0.2:9479", "http://10.1.0.7:9479"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("they are %v, %v, want %v", got, err, want)
	}
}

// pages serves leases in pages, and counts them. Agents of the first so many nodes cannot be asked.
func pages(t *testing.T, nodes, silent int, served *int) *fake.Clientset {
	t.Helper()
	api := fake.NewClientset()
	api.PrependReactor("list", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		from := 0
		if options.Continue != "" {
			if _, err := fmt.Sscan(options.Continue, &from); err != nil {
				return true, nil, err
			}
		}
		*served++
		list := &coordinationv1.LeaseList{}
		to := min(from+int(options.Limit), nodes)
		for i := from; i < to; i++ {
			address := fmt.Sprintf("http://10.1.%d.%d:9479", i/200, i%200+1)
			if i < silent {
				address = ""
			}
			list.Items = append(list.Items, *leaseOf(t, fmt.Sprintf("n%d", i), address, time.Now()))
		}
		if to < nodes {
			list.Continue = strconv.Itoa(to)
		}
		return true, list, nil
	})
	return api
}

// No more pages are read than it takes to have enough to pick from.
func TestLeasesAreReadUntilThereAreEnough(t *testing.T) {
	for name, test := range map[string]struct{ nodes, silent, pages, found int }{
		"one":                   {1, 0, 1, 1},
		"a page":                {500, 0, 1, 500},
		"more than a page":      {1200, 0, 1, 500},
		"few can be asked yet":  {1200, 950, 3, 250},
		"none can be asked yet": {1200, 1200, 3, 0},
	} {
		served := 0
		found, err := (&peers{api: pages(t, test.nodes, test.silent, &served), node: "other"}).addresses(t.Context())
		if err != nil || served != test.pages || len(found) != test.found {
			t.Errorf("%s: %d found in %d pages, %v", name, len(found), served, err)
		}
	}
}

func TestLeasesThatCannotBeListed(t *testing.T) {
	api, failed := fake.NewClientset(), errors.New("forbidden")
	api.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, failed })
	if found, err := (&peers{api: api}).addresses(context.Background()); !errors.Is(err, failed) || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}
