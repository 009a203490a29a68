package testenv

import (
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Quiet discards the logs of components in this process. It is for TestMain.
func Quiet() {
	logger := zap.New(zap.Level(zapcore.DPanicLevel))
	log.SetLogger(logger)
	klog.SetLogger(logger)
}
