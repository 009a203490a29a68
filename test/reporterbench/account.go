package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// newAccount makes an account with these roles, and returns who it is to the API server.
func (l *lab) newAccount(ctx context.Context, name string, roles ...string) (user string, err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := l.api.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("creating an account: %w", err)
	}
	for _, role := range roles {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}
		if _, err := l.api.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			return "", fmt.Errorf("binding a role: %w", err)
		}
	}
	return "system:serviceaccount:" + namespace + ":" + name, nil
}

// writeToken has a token made for a pod of the account on the node, and writes into the
// directory what the kubelet would mount, and a kubeconfig that says the same.
func (l *lab) writeToken(ctx context.Context, account, node, dir string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-" + node},
		Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "reporter", Image: "reporter"}}},
	}
	pod, err := l.api.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a pod: %w", err)
	}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	answer, err := l.api.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token: %w", err)
	}
	for name, data := range map[string][]byte{"token": []byte(answer.Status.Token), "ca.crt": l.ca, "namespace": []byte(namespace)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	const only = "default"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{only: {Server: "https://" + l.plane.APIServer, CertificateAuthority: filepath.Join(dir, "ca.crt")}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{only: {TokenFile: filepath.Join(dir, "token")}},
		Contexts:       map[string]*clientcmdapi.Context{only: {Cluster: only, AuthInfo: only}},
		CurrentContext: only,
	}, filepath.Join(dir, "kubeconfig"))
}

// service are the variables with which a pod finds the API server.
func (l *lab) service() ([]string, error) {
	host, port, err := net.SplitHostPort(l.plane.APIServer)
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, err
}
