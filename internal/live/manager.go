package live

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerName is the name of the manager's Deployment and of its account.
const managerName = "readygate-manager"

// ManagerVersion is the version of the manager in this namespace: what its Deployment is
// labelled with, else its image.
func (s *Source) ManagerVersion(ctx context.Context, namespace string) (string, error) {
	var deployment appsv1.Deployment
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: managerName}, &deployment)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("there is no Deployment %s in namespace %s: name its namespace with --namespace", managerName, namespace)
	}
	if err != nil {
		return "", cannot("get Deployment "+managerName, err)
	}
	if label := deployment.Labels["app.kubernetes.io/version"]; label != "" {
		return label, nil
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		return container.Image, nil
	}
	return "", fmt.Errorf("the Deployment %s has no container", managerName)
}
