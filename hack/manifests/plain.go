package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/core/admission"
)

// writePlain writes a rendered chart without what only Helm reads, for kubectl.
func writePlain(rendered io.Reader, path string, withNamespace bool) error {
	documents, err := plainDocuments(rendered)
	if err != nil {
		return err
	}
	if len(documents) == 0 {
		return errors.New("the input has no object: pipe what helm template prints into this command")
	}
	if withNamespace {
		first, err := admission.YAML(namespace())
		if err != nil {
			return err
		}
		documents = append(first, documents...)
	}
	return write(path, documents...)
}

// namespace is that of the manager. Its pods use the network of the node, so where Pod
// Security is enforced the namespace must allow it.
func namespace() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerNamespace, Labels: map[string]string{
			admission.PartOfLabel:                admission.PartOf,
			"pod-security.kubernetes.io/enforce": "privileged",
		}},
	}
}

func plainDocuments(rendered io.Reader) ([][]byte, error) {
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(rendered))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		object := map[string]any{}
		if err := yaml.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("reading what Helm rendered: %w", err)
		}
		if len(object) == 0 { // comments
			continue
		}
		withoutHelm(object)
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

// withoutHelm drops labels and annotations that are Helm's.
func withoutHelm(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := metadata[field].(map[string]any)
		for key, value := range texts {
			if strings.HasPrefix(key, "helm.sh/") || value == "Helm" || key == "app.kubernetes.io/instance" {
				delete(texts, key)
			}
		}
		if len(texts) == 0 {
			delete(metadata, field)
		}
	}
}
