package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/liveread"
	"github.com/readygate/readygate/internal/mutatingpolicy"
	"github.com/readygate/readygate/internal/plugin/view"
)

// pageSize is the number of objects per list request.
const pageSize = 500

// Source reads from a cluster.
type Source struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
}

// NewSource returns a source for a cluster. It reads no objects.
func NewSource(config *rest.Config) (*Source, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), podv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // no client-side rate limit: few requests
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, inWords("", err)
	}
	return &Source{config: config, scheme: scheme, client: reader}, nil
}

// Rules returns all NodeReadinessRules. Its errors are written for users.
func (s *Source) Rules(ctx context.Context) ([]*v1alpha1.NodeReadinessRule, error) {
	return list(ctx, s, "nodereadinessrules", &v1alpha1.NodeReadinessRuleList{}, func(l *v1alpha1.NodeReadinessRuleList) []*v1alpha1.NodeReadinessRule { return pointers(l.Items) })
}

// Nodes returns all nodes that match the options.
func (s *Source) Nodes(ctx context.Context, options ...client.ListOption) ([]*corev1.Node, error) {
	return list(ctx, s, "nodes", &corev1.NodeList{}, func(l *corev1.NodeList) []*corev1.Node { return pointers(l.Items) }, options...)
}

// Names returns the names of the objects of a core kind, e.g. "Pod", in a namespace.
func (s *Source) Names(ctx context.Context, kind, namespace string) ([]string, error) {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list(ctx, s, strings.ToLower(kind)+"s", objects, func(l *metav1.PartialObjectMetadataList) (names []string) {
		for i := range l.Items {
			names = append(names, l.Items[i].Name)
		}
		return names
	}, client.InNamespace(namespace))
}

// Explanation returns the explanation of one node, read from the API server, with events if they may be read.
func (s *Source) Explanation(ctx context.Context, name string) (view.Explanation, error) {
	var node corev1.Node
	if err := s.get(ctx, "node", client.ObjectKey{Name: name}, &node); err != nil {
		return view.Explanation{}, err
	}
	rules, err := s.Rules(ctx)
	if err != nil {
		return view.Explanation{}, err
	}
	var unseen []string
	events, err := s.events(ctx, "Node", corev1.NamespaceDefault, name) // nodes have no namespace
	if err != nil {
		unseen = append(unseen, fmt.Sprintf("events of the node: %v", err))
	}
	return view.NewBook(rules).Explanation(&node, events, unseen, time.Now()), nil
}

// events returns the events about an object, in its namespace.
func (s *Source) events(ctx context.Context, kind, namespace, name string) ([]corev1.Event, error) {
	about := client.MatchingFieldsSelector{Selector: fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.AsSelector()}
	return list(ctx, s, "events in namespace "+namespace, &corev1.EventList{}, func(l *corev1.EventList) []corev1.Event { return l.Items },
		client.InNamespace(namespace), about)
}

// get reads one object. If it does not exist, the error names a command that lists the existing ones.
func (s *Source) get(ctx context.Context, kind string, key client.ObjectKey, into client.Object) error {
	err := s.client.Get(ctx, key, into)
	switch {
	case !apierrors.IsNotFound(err):
		return cannot("get "+kind+" "+strings.TrimPrefix(key.String(), "/"), err)
	case key.Namespace == "":
		return fmt.Errorf("there is no %s %q: kubectl get %ss lists those that exist: %w", kind, key.Name, kind, err)
	}
	return fmt.Errorf("there is no %s %q in namespace %q: kubectl get %ss -n %s lists those that exist: %w", kind, key.Name, key.Namespace, kind, key.Namespace, err)
}

// list reads objects page by page. The argument what names them in errors; items returns what is kept of a page.
func list[T any, L client.ObjectList](ctx context.Context, s *Source, what string, kind L, items func(L) []T, options ...client.ListOption) ([]T, error) {
	var all []T
	for page, err := range liveread.Pages(func(token string) (L, error) {
		page := kind.DeepCopyObject().(L)
		return page, s.client.List(ctx, page, append(options, client.Limit(pageSize), client.Continue(token))...)
	}) {
		if err != nil {
			return nil, cannot("list "+what, err)
		}
		all = append(all, items(page)...)
	}
	return all, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// cannot wraps an error with the failed action and the next step.
func cannot(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot %s: %w", what, inWords(what, err))
}

// inWords adds the next step to an error. The argument what helps to find the kind if the error does not name it.
func inWords(what string, err error) error {
	switch {
	case notInstalled(err) && strings.Contains(strings.ToLower(what+err.Error()), "podreadinessrule"):
		return fmt.Errorf("this cluster does not serve PodReadinessRules: install or upgrade Readygate, or select another cluster with --context (%w)", err)
	case notInstalled(err):
		return fmt.Errorf("this cluster does not serve NodeReadinessRules: install Readygate, or select another cluster with --context (%w)", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("permission denied: ask for a role that can get, list and watch it (%w)", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("authentication failed: log in again (%w)", err)
	}
	return err
}

// notInstalled reports whether the cluster does not serve the kind.
func notInstalled(err error) bool { return meta.IsNoMatchError(err) || noResource(err) }

// noResource reports whether the API server does not serve the kind: a missing object has a name in the error.
func noResource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// managerName is the name of the manager's Deployment and of its account.
const managerName = "readygate-manager"

// ManagerVersion returns the version of the manager in this namespace: the version label of its Deployment, else its
// image.
func (s *Source) ManagerVersion(ctx context.Context, namespace string) (string, error) {
	deployment, err := s.manager(ctx, namespace)
	if err != nil {
		return "", err
	}
	if label := deployment.Labels["app.kubernetes.io/version"]; label != "" {
		return label, nil
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		return container.Image, nil
	}
	return "", fmt.Errorf("the Deployment %s has no container", managerName)
}

// PolicyVersion returns the version of MutatingAdmissionPolicy that the cluster serves; the preferred one if it serves none.
func (s *Source) PolicyVersion(ctx context.Context) (string, error) {
	versions, err := mutatingpolicy.NewDiscovery(s.config, nil)
	if err != nil {
		return "", inWords("", err)
	}
	version, err := versions.Version(ctx)
	if meta.IsNoMatchError(err) {
		return mutatingpolicy.Versions[0], nil
	}
	return version, inWords("", err)
}

// LatchImage returns the value of the manager's flag --latch-image in this namespace; empty if the flag is not set. If
// it is set more than once, the last value counts.
func (s *Source) LatchImage(ctx context.Context, namespace string) (image string, err error) {
	deployment, err := s.manager(ctx, namespace)
	if err != nil {
		return "", err
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for i, arg := range container.Args {
			if value, found := strings.CutPrefix(arg, "--latch-image="); found {
				image = value
			} else if arg == "--latch-image" && i+1 < len(container.Args) {
				image = container.Args[i+1]
			}
		}
	}
	return image, nil
}

// manager returns the manager's Deployment in this namespace.
func (s *Source) manager(ctx context.Context, namespace string) (*appsv1.Deployment, error) {
	var deployment appsv1.Deployment
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: managerName}, &deployment)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Deployment %s in namespace %s: set the manager's namespace with --namespace (%w)", managerName, namespace, err)
	}
	return &deployment, cannot("get Deployment "+managerName, err)
}
