package live

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/plugin/view"
)

// PodFilter selects pods.
type PodFilter struct {
	// Namespace is the namespace of the pods; empty for all.
	Namespace string
	// Node is the node of the pods; empty for any.
	Node string
}

// PodRules returns all PodReadinessRules. Its errors are written for users.
func (s *Source) PodRules(ctx context.Context) ([]*podv1alpha1.PodReadinessRule, error) {
	return list(ctx, s, "podreadinessrules", &podv1alpha1.PodReadinessRuleList{}, func(l *podv1alpha1.PodReadinessRuleList) []*podv1alpha1.PodReadinessRule { return pointers(l.Items) })
}

// PodRulesIfInstalled returns all PodReadinessRules; none if the cluster does not serve the kind.
func (s *Source) PodRulesIfInstalled(ctx context.Context) ([]*podv1alpha1.PodReadinessRule, error) {
	rules, err := s.PodRules(ctx)
	if notInstalled(err) {
		return nil, nil
	}
	return rules, err
}

// PodRuleRows returns the rows of all PodReadinessRules; none if the cluster does not serve the kind. A missing
// permission is returned in unseen.
func (s *Source) PodRuleRows(ctx context.Context) (rows []view.PodRule, unseen []string, err error) {
	rules, err := s.PodRules(ctx)
	switch {
	case notInstalled(err):
		return []view.PodRule{}, nil, nil
	case apierrors.IsForbidden(err):
		return []view.PodRule{}, []string{fmt.Sprintf("PodReadinessRules: %v", err)}, nil
	case err != nil:
		return nil, nil, err
	}
	return view.NewPodBook(rules).Rules(), nil, nil
}

// Pods returns the rows of pods, read from the API server. What may not be read is listed in Unseen.
func (s *Source) Pods(ctx context.Context, which PodFilter) (view.Pods, error) {
	rules, err := s.PodRules(ctx)
	if err != nil {
		return view.Pods{}, err
	}
	if which.Node != "" { // a user without permission for nodes can still filter by one
		if err := s.get(ctx, "node", client.ObjectKey{Name: which.Node}, &corev1.Node{}); apierrors.IsNotFound(err) {
			return view.Pods{}, err
		}
	}
	namespaces, unseen, err := s.namespaces(ctx, which.Namespace)
	if err != nil {
		return view.Pods{}, err
	}
	objects, err := s.slimPods(ctx, which)
	if err != nil {
		return view.Pods{}, err
	}
	now := time.Now()
	agents, notSeen := s.agents(ctx, now)
	all := view.NewPodBook(rules).Pods(objects, func(pod *corev1.Pod) view.Place {
		place := view.Place{Namespace: namespaces[pod.Namespace]}
		if notSeen == nil && pod.Spec.NodeName != "" {
			place.Agent = agents[pod.Spec.NodeName]
			place.Agent.Known = true
		}
		return place
	}, now)
	if notSeen != nil && all.Count.Waiting > 0 {
		unseen = append(unseen, fmt.Sprintf("agents: %v", notSeen))
	}
	all.Unseen = unseen
	return all, nil
}

// slimPods returns pods with only the fields that rows need, because there can be many.
func (s *Source) slimPods(ctx context.Context, which PodFilter) ([]*corev1.Pod, error) {
	options := []client.ListOption{client.InNamespace(which.Namespace)}
	if which.Node != "" {
		options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", which.Node)})
	}
	return list(ctx, s, "pods", &corev1.PodList{}, func(l *corev1.PodList) (pods []*corev1.Pod) {
		for i := range l.Items {
			pods = append(pods, slim(&l.Items[i]))
		}
		return pods
	}, options...)
}

// namespaces returns the labels of one namespace, or of all, by name. A missing namespace is an error. A missing
// permission is returned in unseen.
func (s *Source) namespaces(ctx context.Context, only string) (labels map[string]map[string]string, unseen []string, err error) {
	labels = map[string]map[string]string{}
	if only != "" {
		if labels[only], err = s.namespace(ctx, only); apierrors.IsNotFound(err) {
			return nil, nil, err
		}
	} else {
		var all []*corev1.Namespace
		all, err = list(ctx, s, "namespaces", &corev1.NamespaceList{}, func(l *corev1.NamespaceList) []*corev1.Namespace { return pointers(l.Items) })
		for _, namespace := range all {
			labels[namespace.Name] = known(namespace.Labels)
		}
	}
	if err != nil {
		unseen = []string{fmt.Sprintf("labels of namespaces, which rules select by: %v", err)}
	}
	return labels, unseen, nil
}

func (s *Source) namespace(ctx context.Context, name string) (map[string]string, error) {
	var namespace corev1.Namespace
	if err := s.get(ctx, "namespace", client.ObjectKey{Name: name}, &namespace); err != nil {
		return nil, err
	}
	return known(namespace.Labels), nil
}

// known returns non-nil labels: nil means that the labels were not read.
func known(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

// agents returns the agents that have a Lease, by node.
func (s *Source) agents(ctx context.Context, now time.Time) (map[string]view.Agent, error) {
	leases, err := list(ctx, s, "leases in namespace "+agents.Namespace, &coordinationv1.LeaseList{}, func(l *coordinationv1.LeaseList) []*coordinationv1.Lease { return pointers(l.Items) },
		client.InNamespace(agents.Namespace), client.MatchingLabels{agents.ComponentLabel: agents.Component})
	found := make(map[string]view.Agent, len(leases))
	for _, lease := range leases {
		if node, ok := agents.NodeOf(lease); ok {
			found[node] = agentOf(lease, now)
		}
	}
	return found, err
}

func agentOf(lease *coordinationv1.Lease, now time.Time) view.Agent {
	agent := view.Agent{Known: true, Alive: agents.Alive(lease, now), Version: agents.ReportOf(lease).Version}
	if lease.Spec.RenewTime != nil {
		agent.Renewed = lease.Spec.RenewTime.Time
	}
	return agent
}

// PodExplanation returns the explanation of one pod, read from the API server. What may not be read is listed in Unseen.
func (s *Source) PodExplanation(ctx context.Context, namespace, name string) (view.PodExplanation, error) {
	var pod corev1.Pod
	if err := s.get(ctx, "pod", client.ObjectKey{Namespace: namespace, Name: name}, &pod); err != nil {
		return view.PodExplanation{}, err
	}
	rules, err := s.PodRules(ctx)
	if err != nil {
		return view.PodExplanation{}, err
	}
	now := time.Now()
	place, unseen := s.placeOf(ctx, &pod, now)
	events, err := s.events(ctx, "Pod", namespace, name)
	if err != nil {
		unseen = append(unseen, fmt.Sprintf("events of the pod: %v", err))
	}
	return view.NewPodBook(rules).Explanation(&pod, place, events, unseen, now), nil
}

// placeOf returns the place of a pod, as far as it may be read.
func (s *Source) placeOf(ctx context.Context, pod *corev1.Pod, now time.Time) (place view.Place, unseen []string) {
	miss := func(what string, err error) { unseen = append(unseen, fmt.Sprintf("%s: %v", what, err)) }
	var err error
	if place.Namespace, err = s.namespace(ctx, pod.Namespace); err != nil {
		miss("labels of the namespace, which rules select by", err)
	}
	if pod.Spec.NodeName == "" {
		return place, unseen
	}
	var node corev1.Node
	if err := s.get(ctx, "node", client.ObjectKey{Name: pod.Spec.NodeName}, &node); err == nil {
		place.Node = &node
	} else {
		miss("the node", err)
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
