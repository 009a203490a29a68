// Package chart tests the chart: what it renders, as the types of the API see it, and what
// happens when Helm 3 and Helm 4 install and upgrade it on a real API server. There is no
// kubelet, so nothing runs here: that is for the tests on real nodes.
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
	log.SetLogger(logr.Discard()) // what fails, a test says
	klog.SetLogger(logr.Discard())
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme.Scheme), v1alpha1.AddToScheme(scheme.Scheme), podv1alpha1.AddToScheme(scheme.Scheme)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	testenv.CleanUp()
	os.Exit(code)
}
