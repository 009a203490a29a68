package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
)

// What stands in the chart's files for what is known only when it is installed. The namespace
// is policy.ManagerNamespace there.
const (
	accountPlaceholder = "readygate-reporter-NAME"
	typePlaceholder    = "TYPE"
)

// chartPolicies are the policies that the chart installs, by file: what templates choose
// between has a file of its own.
func chartPolicies() map[string][]runtime.Object {
	reporter := admission.Reporter{Namespace: admission.ManagerNamespace, Account: accountPlaceholder, Types: []string{typePlaceholder}}
	files := map[string][]runtime.Object{
		"taint-new-nodes.yaml":         {admission.TaintNewNodesPolicy()},
		"taint-new-nodes-binding.yaml": {admission.TaintNewNodesBinding()},
		"gate-new-pods.yaml":           {admission.GateNewPodsPolicy()},
		"gate-new-pods-binding.yaml":   {admission.GateNewPodsBinding()},
		"tolerations.yaml":             {admission.Tolerations(), admission.TolerationsBinding()},
		"completions-binding.yaml":     {admission.CompletionsBinding()},
		"holds-binding.yaml":           {admission.HoldsBinding()},
		"reporter-policy.yaml":         limits(reporter),
		"reserved-gates.yaml":          {admission.ReservedGates(), admission.ReservedGatesBinding()},
		"reserved-policy.yaml":         {reporter.Reserved(), reporter.ReservedBinding()},
	}
	for _, obj := range admission.Installed() {
		kind, name := obj.GetObjectKind().GroupVersionKind().Kind, obj.(metav1.Object).GetName()
		optional := name == admission.HoldsName && kind == "ValidatingAdmissionPolicyBinding"
		if !mutatingpolicy.Is(obj) && !optional {
			files["policies.yaml"] = append(files["policies.yaml"], obj)
		}
	}
	return files
}

// writeChart writes the chart's files: texts that templates read and the template engine never
// parses.
func writeChart(dir string) error {
	dir = filepath.Join(dir, "files")
	var failed error
	for file, objects := range chartPolicies() {
		failed = errors.Join(failed, writeObjects(filepath.Join(dir, file), "", objects...))
	}
	names, err := fs.Glob(crds.Files, "*.yaml")
	failed = errors.Join(failed, err)
	for _, name := range names {
		failed = errors.Join(failed, writeCRDs(filepath.Join(dir, "crds", name), name))
	}
	return failed
}
