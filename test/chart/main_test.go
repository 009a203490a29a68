// Package chart_test tests the chart: the rendered objects, decoded as API types, and how Helm 3 and Helm 4
// install and upgrade it on a real API server. No kubelet runs, so no pod starts; test/e2e covers that.
package chart_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the tests report failures
	klog.SetLogger(logr.Discard())
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme.Scheme), v1alpha1.AddToScheme(scheme.Scheme), podv1alpha1.AddToScheme(scheme.Scheme)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	testenv.CleanUp()
	os.Exit(code)
}
