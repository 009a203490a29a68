package live

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerName is the name of the manager's Deployment and of its account.
const managerName = "readygate-manager"

// ManagerVersion is the version of the manager in this namespace: what its Deployment is
// labelled with, else its image.
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

// LatchImage is the value of the flag --latch-image of the manager in this namespace; empty if the
// manager does not have the flag. As for the manager, the last one counts.
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

// manager is the manager's Deployment in this namespace.
func (s *Source) manager(ctx context.Context, namespace string) (*appsv1.Deployment, error) {
	var deployment appsv1.Deployment
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: managerName}, &deployment)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Deployment %s in namespace %s: name its namespace with --namespace (%w)", managerName, namespace, err)
	}
	return &deployment, cannot("get Deployment "+managerName, err)
}
