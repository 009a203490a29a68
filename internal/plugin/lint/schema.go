package lint

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// definition is a CustomResourceDefinition, compiled to validate objects as the API server does.
type definition struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	cel        *cel.Validator
}

// Definitions are compiled once, on first use, because compiling their expressions is slow.
var (
	ruleDefinition    = definitionOf(v1alpha1.CRDName, v1alpha1.GroupVersion.Version)
	podRuleDefinition = definitionOf(podv1alpha1.CRDName, podv1alpha1.GroupVersion.Version)
)

func definitionOf(name, version string) func() (*definition, error) {
	return sync.OnceValues(func() (*definition, error) {
		definitions, err := crds.Definitions()
		if err != nil {
			return nil, err
		}
		for _, crd := range definitions {
			for _, v := range crd.Spec.Versions {
				if crd.Name == name && v.Name == version {
					return newDefinition(v.Schema.OpenAPIV3Schema)
				}
			}
		}
		return nil, fmt.Errorf("there is no definition of %s in version %s", name, version)
	})
}

func newDefinition(props *apiextensionsv1.JSONSchemaProps) (*definition, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	openAPI, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	return &definition{structural: structural, openAPI: openAPI, cel: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// unknown returns the fields that the schema does not have. It removes them from the object, and also the nulls that
// the API server drops.
func (d *definition) unknown(object map[string]any) ([]string, *field.Error) {
	bad, inMeta := objectmeta.CoerceWithOptions(nil, object, d.structural, true, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if bad != nil {
		return nil, bad
	}
	unknown := pruning.PruneWithOptions(object, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	return append(inMeta, unknown...), nil
}

// validate returns the API server's errors for creating an object; with a former state, for updating it.
func (d *definition) validate(object, former map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, d.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if len(errs) > 0 {
		return errs // expressions expect the right types
	}
	var old any
	if former != nil {
		old = former
	}
	broken, _ := d.cel.Validate(context.Background(), nil, d.structural, object, old, math.MaxInt64)
	return broken
}

// checkMeta validates name, labels and annotations.
func checkMeta(d document) field.ErrorList {
	d = d.copy()
	d.SetNamespace("") // is ignored: rules have none
	return apivalidation.ValidateObjectMetaAccessor(&d.Unstructured, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// explain names the reference of a field, and the kubectl explain command.
func explain(kind, path string) string {
	var plain []string
	for part := range strings.SplitSeq(path, ".") {
		name, _, _ := strings.Cut(part, "[")
		plain = append(plain, name)
	}
	return "see docs/reference/api.md, or if the CRD is installed: kubectl explain " + strings.ToLower(kind) + "." + strings.Join(plain, ".")
}
