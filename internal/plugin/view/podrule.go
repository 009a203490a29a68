package view

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// PodRule is the row of one PodReadinessRule.
type PodRule struct {
	Name    string    `json:"name"`
	UID     types.UID `json:"uid"`
	Created time.Time `json:"created"`

	Gate      string `json:"gate"`
	StartHold bool   `json:"startHold,omitempty"`
	// Components are the names of the components.
	Components []string `json:"components"`

	// Standing is Enforced, the reason why the rule is not enforced, or Unobserved.
	Standing string `json:"standing"`
	// Message has the details and the next step.
	Message string `json:"message,omitempty"`

	// Count is the summary of the rule's status.
	Count v1alpha1.PodSummary `json:"count"`
}

// Rules returns the rows of all rules, oldest first.
func (b *PodBook) Rules() []PodRule {
	rows := make([]PodRule, 0, len(b.rules))
	for _, rule := range b.rules {
		rows = append(rows, podRule(rule, b.objects[rule.Name]))
	}
	return rows
}

func podRule(rule *podrule.Rule, obj *v1alpha1.PodReadinessRule) PodRule {
	row := PodRule{
		Name: rule.Name, UID: rule.UID, Created: rule.Created, Gate: rule.Gate, StartHold: rule.StartHold,
		Count: ptr.Deref(obj.Status.Summary, v1alpha1.PodSummary{}),
	}
	for i := range rule.Components {
		row.Components = append(row.Components, rule.Components[i].Name)
	}
	waits := soleController(obj.Status.Conditions, nodev1alpha1.ReasonWaitingForLease)
	if waits != "" {
		row.Standing, row.Message = nodev1alpha1.ReasonWaitingForLease, waits
	} else if is := enforcedOf(obj); is != nil {
		row.Standing, row.Message = is.Reason, is.Message
	} else {
		row.Standing, row.Message = Unobserved, "no manager has observed the current generation of the rule; if this persists, check that readygate-manager runs"
	}
	return row
}
