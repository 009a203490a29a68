package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/paging"
	"github.com/readygate/readygate/internal/plugin/view"
)

// pageSize is how many objects a request asks for.
const pageSize = 500

// Source is a cluster to read from.
type Source struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
}

// NewSource connects to a cluster. Nothing is read yet.
func NewSource(config *rest.Config) (*Source, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), podv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // a few requests a second: the API server decides
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, inWords("", err)
	}
	return &Source{config: config, scheme: scheme, client: reader}, nil
}

// Rules are all rules. It is an error with words for users if there can be none.
func (s *Source) Rules(ctx context.Context) ([]*v1alpha1.NodeReadinessRule, error) {
	var rules []*v1alpha1.NodeReadinessRule
	err := pages(ctx, s.client, &v1alpha1.NodeReadinessRuleList{}, func(list *v1alpha1.NodeReadinessRuleList) {
		for i := range list.Items {
			rules = append(rules, &list.Items[i])
		}
	})
	return rules, cannot("list nodereadinessrules", err)
}

// Nodes are all nodes that match the options.
func (s *Source) Nodes(ctx context.Context, options ...client.ListOption) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	err := pages(ctx, s.client, &corev1.NodeList{}, func(list *corev1.NodeList) {
		for i := range list.Items {
			nodes = append(nodes, &list.Items[i])
		}
	}, options...)
	return nodes, cannot("list nodes", err)
}

// Story is the story of one node, from fresh objects. Events are told if they may be read.
func (s *Source) Story(ctx context.Context, name string, now func() time.Time) (view.Story, error) {
	var node corev1.Node
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		if apierrors.IsNotFound(err) {
			return view.Story{}, noNode(name, err)
		}
		return view.Story{}, cannot("get node "+name, err)
	}
	rules, err := s.Rules(ctx)
	if err != nil {
		return view.Story{}, err
	}
	var unseen []string
	events, err := s.events(ctx, name)
	if err != nil {
		unseen = append(unseen, fmt.Sprintf("events of the node: %v", err))
	}
	return view.NewBook(rules).Story(&node, events, unseen, now()), nil
}

// events are those of a node; nodes have no namespace, and their events are in default.
func (s *Source) events(ctx context.Context, node string) ([]corev1.Event, error) {
	var events []corev1.Event
	about := client.MatchingFieldsSelector{Selector: fields.Set{"involvedObject.kind": "Node", "involvedObject.name": node}.AsSelector()}
	err := pages(ctx, s.client, &corev1.EventList{}, func(list *corev1.EventList) { events = append(events, list.Items...) },
		client.InNamespace(corev1.NamespaceDefault), about)
	return events, cannot("list events in namespace default", err)
}

// pages lists page by page; the list is used again for each of them.
func pages[L client.ObjectList](ctx context.Context, reader client.Reader, list L, each func(L), options ...client.ListOption) error {
	for page, err := range paging.Pages(func(token string) (L, error) {
		page := list.DeepCopyObject().(L)
		return page, reader.List(ctx, page, append(options, client.Limit(pageSize), client.Continue(token))...)
	}) {
		if err != nil {
			return err
		}
		each(page)
	}
	return nil
}

// cannot says what could not be done, and what to do about it.
func cannot(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot %s: %w", what, inWords(what, err))
}

// inWords says what to do about an error. Not every one names the kind that it is about.
func inWords(what string, err error) error {
	switch {
	case notInstalled(err) && strings.Contains(strings.ToLower(what+err.Error()), "podreadinessrule"):
		return fmt.Errorf("this cluster has no PodReadinessRule: install Readygate, upgrade it, or choose another cluster with --context (%w)", err)
	case notInstalled(err):
		return fmt.Errorf("this cluster has no NodeReadinessRule: install Readygate, or choose another cluster with --context (%w)", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not: ask for a role that can get, list and watch it (%w)", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know you: log in again (%w)", err)
	}
	return err
}

// notInstalled says that a kind is not there at all.
func notInstalled(err error) bool { return meta.IsNoMatchError(err) || noResource(err) }

// noResource says that the API server knows no such kind; else it names what it did not find.
func noResource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}
