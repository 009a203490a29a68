package reporter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const maxConditionType = 316

// dnsName is the form of DNS names: lower case, digits, dashes and dots.
const dnsName = `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`

var (
	// conditionTypeForm is a qualified name: an optional DNS name and slash, then a name.
	conditionTypeForm = regexp.MustCompile(`^(` + dnsName + `/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	nodeNameForm      = regexp.MustCompile(`^` + dnsName + `$`)
)

// kubernetesTypes are written by the kubelet, NetworkUnavailable by CNI plugins and cloud providers. A second writer
// would overwrite them.
var kubernetesTypes = []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "OutOfDisk", "NetworkUnavailable"}

func conditionTypeFits(name string) error {
	const example = "e.g. example.com/NetworkReady"
	switch {
	case name == "":
		return fmt.Errorf("is empty, must be the type of a node condition, %s", example)
	case len(name) > maxConditionType:
		return fmt.Errorf("has %d characters, must have at most %d, %s", len(name), maxConditionType, example)
	case !conditionTypeForm.MatchString(name):
		return fmt.Errorf("is %q, must be a name with an optional domain before it, %s", name, example)
	case slices.ContainsFunc(kubernetesTypes, func(theirs string) bool { return strings.EqualFold(name, theirs) }):
		return fmt.Errorf("is %q, which Kubernetes itself writes; must be a type of your own, %s", name, example)
	}
	return nil
}
