package live

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/plugin/view"
)

// PodFilter says which pods are asked for.
type PodFilter struct {
	// Namespace is theirs; empty: all.
	Namespace string
	// Node is theirs; empty: whichever.
	Node string
}

// PodRules are all rules of pods. It is an error with words for users if there can be none.
func (s *Source) PodRules(ctx context.Context) ([]*podv1alpha1.PodReadinessRule, error) {
	var rules []*podv1alpha1.PodReadinessRule
	err := pages(ctx, s.client, &podv1alpha1.PodReadinessRuleList{}, func(list *podv1alpha1.PodReadinessRuleList) {
		for i := range list.Items {
			rules = append(rules, &list.Items[i])
		}
	})
	return rules, cannot("list podreadinessrules", err)
}

// PodRulesIfInstalled are all rules of pods, and none where the cluster does not have the kind.
func (s *Source) PodRulesIfInstalled(ctx context.Context) ([]*podv1alpha1.PodReadinessRule, error) {
	rules, err := s.PodRules(ctx)
	if notInstalled(err) {
		return nil, nil
	}
	return rules, err
}

// PodRuleRows are the lines about all rules of pods. Where there can be none there are none; why they may
// not be seen is said.
func (s *Source) PodRuleRows(ctx context.Context) (rows []view.PodRule, unseen []string, err error) {
	rules, err := s.PodRules(ctx)
	switch {
	case notInstalled(err):
		return []view.PodRule{}, nil, nil
	case apierrors.IsForbidden(err):
		return []view.PodRule{}, []string{fmt.Sprintf("rules of pods: %v", err)}, nil
	case err != nil:
		return nil, nil, err
	}
	return view.NewPodBook(rules).Rules(), nil, nil
}

// Pods are the lines about pods, from fresh objects. What may not be seen is said.
func (s *Source) Pods(ctx context.Context, which PodFilter, now func() time.Time) (view.Pods, error) {
	rules, err := s.PodRules(ctx)
	if err != nil {
		return view.Pods{}, err
	}
	if err := s.lookForNode(ctx, which.Node); err != nil {
		return view.Pods{}, err
	}
	namespaces, unseen, err := s.namespaces(ctx, which.Namespace)
	if err != nil {
		return view.Pods{}, err
	}
	objects, err := s.slimPods(ctx, which)
	if err != nil {
		return view.Pods{}, err
	}
	agents, notSeen := s.agents(ctx, now())
	all := view.NewPodBook(rules).Pods(objects, func(pod *corev1.Pod) view.Place {
		place := view.Place{Namespace: namespaces[pod.Namespace]}
		if notSeen == nil && pod.Spec.NodeName != "" {
			place.Agent = agents[pod.Spec.NodeName]
			place.Agent.Known = true
		}
		return place
	}, now())
	if notSeen != nil && all.Count.Waiting > 0 {
		unseen = append(unseen, fmt.Sprintf("agents: %v", notSeen))
	}
	all.Unseen = unseen
	return all, nil
}

// lookForNode says that there is no such node, if that is known; an empty name is any.
func (s *Source) lookForNode(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}); apierrors.IsNotFound(err) {
		return noNode(name, err)
	}
	return nil // who may not see nodes can still name one
}

func noNode(name string, err error) error {
	return fmt.Errorf("there is no node %q: kubectl get nodes shows those that are there: %w", name, err)
}

// slimPods are pods with what lines need, and no more: there can be many.
func (s *Source) slimPods(ctx context.Context, which PodFilter) ([]*corev1.Pod, error) {
	options := []client.ListOption{client.InNamespace(which.Namespace)}
	if which.Node != "" {
		options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", which.Node)})
	}
	var pods []*corev1.Pod
	err := pages(ctx, s.client, &corev1.PodList{}, func(list *corev1.PodList) {
		for i := range list.Items {
			pods = append(pods, slim(&list.Items[i]))
		}
	}, options...)
	return pods, cannot("list pods", err)
}

// namespaces are the labels of one namespace, or of all, by name. That it is not there is an error;
// that they may not be seen is said.
func (s *Source) namespaces(ctx context.Context, only string) (labels map[string]map[string]string, unseen []string, err error) {
	labels = map[string]map[string]string{}
	if only != "" {
		labels[only], err = s.namespace(ctx, only)
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("there is no namespace %q: kubectl get namespaces shows those that are there: %w", only, err)
		}
	} else {
		err = pages(ctx, s.client, &corev1.NamespaceList{}, func(list *corev1.NamespaceList) {
			for i := range list.Items {
				labels[list.Items[i].Name] = known(list.Items[i].Labels)
			}
		})
		err = cannot("list namespaces", err)
	}
	if err != nil {
		unseen = []string{fmt.Sprintf("labels of namespaces, by which rules select: %v", err)}
	}
	return labels, unseen, nil
}

func (s *Source) namespace(ctx context.Context, name string) (map[string]string, error) {
	var namespace corev1.Namespace
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return nil, cannot("get namespace "+name, err)
	}
	return known(namespace.Labels), nil
}

// known are labels that were seen, be there none: nil says that they were not.
func known(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

// agents are the agents that have a Lease, by node.
func (s *Source) agents(ctx context.Context, now time.Time) (map[string]view.Agent, error) {
	found := map[string]view.Agent{}
	err := pages(ctx, s.client, &coordinationv1.LeaseList{}, func(list *coordinationv1.LeaseList) {
		for i := range list.Items {
			if node, ok := agents.NodeOf(&list.Items[i]); ok {
				found[node] = agentOf(&list.Items[i], now)
			}
		}
	}, client.InNamespace(agents.Namespace), client.MatchingLabels{agents.ComponentLabel: agents.Component})
	return found, cannot("list leases in namespace "+agents.Namespace, err)
}

func agentOf(lease *coordinationv1.Lease, now time.Time) view.Agent {
	agent := view.Agent{Known: true, Alive: agents.Alive(lease, now), Version: agents.ReportOf(lease).Version}
	if lease.Spec.RenewTime != nil {
		agent.Renewed = lease.Spec.RenewTime.Time
	}
	return agent
}

// PodStory is the story of one pod, from fresh objects. What may not be seen is said.
func (s *Source) PodStory(ctx context.Context, namespace, name string, now func() time.Time) (view.PodStory, error) {
	var pod corev1.Pod
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			return view.PodStory{}, fmt.Errorf("there is no pod %q in namespace %q: kubectl get pods -n %s shows those that are there: %w", name, namespace, namespace, err)
		}
		return view.PodStory{}, cannot("get pod "+namespace+"/"+name, err)
	}
	rules, err := s.PodRules(ctx)
	if err != nil {
		return view.PodStory{}, err
	}
	place, unseen := s.placeOf(ctx, &pod, now())
	events, err := s.podEvents(ctx, &pod)
	if err != nil {
		unseen = append(unseen, fmt.Sprintf("events of the pod: %v", err))
	}
	return view.NewPodBook(rules).Story(&pod, place, events, unseen, now()), nil
}

// placeOf is where a pod is, as far as it may be seen.
func (s *Source) placeOf(ctx context.Context, pod *corev1.Pod, now time.Time) (place view.Place, unseen []string) {
	miss := func(what string, err error) { unseen = append(unseen, fmt.Sprintf("%s: %v", what, err)) }
	var err error
	if place.Namespace, err = s.namespace(ctx, pod.Namespace); err != nil {
		miss("labels of the namespace, by which rules select", err)
	}
	if pod.Spec.NodeName == "" {
		return place, unseen
	}
	var node corev1.Node
	if err := s.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); err == nil {
		place.Node = &node
	} else {
		miss("the node", cannot("get node "+pod.Spec.NodeName, err))
	}
	var lease coordinationv1.Lease
	switch err := s.client.Get(ctx, client.ObjectKey{Namespace: agents.Namespace, Name: agents.Name(pod.Spec.NodeName)}, &lease); {
	case err == nil:
		place.Agent = agentOf(&lease, now)
	case apierrors.IsNotFound(err):
		place.Agent.Known = true
	default:
		miss("the agent of the node", cannot("get lease "+agents.Name(pod.Spec.NodeName), err))
	}
	return place, unseen
}

func (s *Source) podEvents(ctx context.Context, pod *corev1.Pod) ([]corev1.Event, error) {
	var events []corev1.Event
	about := client.MatchingFieldsSelector{Selector: fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod.Name}.AsSelector()}
	err := pages(ctx, s.client, &corev1.EventList{}, func(list *corev1.EventList) { events = append(events, list.Items...) },
		client.InNamespace(pod.Namespace), about)
	return events, cannot("list events in namespace "+pod.Namespace, err)
}

// PodNames are the names of the pods of a namespace.
func (s *Source) PodNames(ctx context.Context, namespace string) ([]string, error) {
	var names []string
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := pages(ctx, s.client, list, func(list *metav1.PartialObjectMetadataList) {
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}, client.InNamespace(namespace))
	return names, cannot("list pods", err)
}
