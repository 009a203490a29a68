package main

import "slices"

// row is a line of the table: tests of one package.
type row struct {
	title, pkg string
	tests      []string
}

var rows = []row{
	{"CRD of rules for nodes: valid and invalid rules, defaults, limits", "integration", []string{"TestAPIServerAcceptsRules", "TestAPIServerRejectsRules", "TestAPIServerRejectsUnknownFields", "TestAPIServerStoresTheLargestRule"}},
	{"CRD of rules for nodes: changes and immutable fields", "integration", []string{"TestAPIServerAcceptsChanges", "TestAPIServerRejectsImmutableChanges"}},
	{"CRD of rules for pods", "podgate", []string{"TestAPIServerValidatesPodRules", "TestTheGateOfARuleIsImmutable"}},
	{"Manifests of the reference project apply unchanged", "integration", []string{"TestManifestsOfTheGuides", "TestManifestsOfUsersApplyUnchanged"}},
	{"kubectl explain, columns, wait, field selectors", "integration", []string{"TestKubectlExplainsEveryField", "TestKubectlGetShowsTheStateOfARule", "TestKubectlWaitsForConditions", "TestKubectlSelectsByField"}},
	{"A rule holds and releases nodes in every mode", "integration", []string{"TestBehaviour", "TestContinuousHoldsAgain", "TestBootstrapOnlyStopsAtTheFirstRelease", "TestARebootHoldsANode"}},
	{"Dry run, deletion of a rule, a taint removed by hand", "integration", []string{"TestSettingDryRunFreezesWhatARuleHolds", "TestDeletingARuleRemovesItsTaintsAndRecords", "TestATaintRemovedByHandComesBack"}},
	{"Conflicts of rules", "integration", []string{"TestYoungerRuleInConflictIsNotEnforced", "TestNoChangeOfARuleInConflictIsRefused"}},
	{"maxUnavailable, maxAge, dependsOn", "integration", []string{"TestABadProbeDoesNotDrainTheFleet", "TestAStaleConditionHoldsANodeOnTime", "TestADependentRuleTakesOverInOneWrite"}},
	{"Tainted at creation", "integration", []string{"TestNewNodeIsCreatedWithTheTaint", "TestNodeTaintedAtCreationIsReleased", "TestANodeIsTaintedInTheRequestThatLabelsIt"}},
	{"Tainted at creation: confined to nodes", "integration", []string{"TestTaintNewNodesPolicyIsConfinedToNodes"}},
	{"Tainted at creation: the first node after a start of the API server", "integration", []string{"TestFirstNodeAfterAPIServerStartIsTainted"}},
	{"Tainted at creation: several API servers", "integration", []string{"TestTaintedAtCreationIsTrueForEveryAPIServer"}},
	{"DaemonSets tolerate the taint", "integration", []string{"TestDaemonSetsThatARuleNamesTolerateItsTaint"}},
	{"The API server is upgraded to the next minor version under a running manager", "integration", []string{"TestTheAPIServerIsUpgraded"}},
	{"Policies limit the manager", "integration", []string{"TestTheManagerIsLimited", "TestManagerPolicyAllowsTheManagersWork", "TestOnlyTheManagerMarksNodesAsCompleted", "TestOnlyTheManagerWritesHoldRecords"}},
	{"Policies reject no request of kubelets", "integration", []string{"TestPoliciesRejectNoRequestOfKubelets"}},
	{"Policies have no type warnings", "integration", []string{"TestNoPolicyHasATypeWarning"}},
	{"RBAC of manager and cleanup", "integration", []string{"TestManagersRoleDeniesUnneededAccess", "TestCleanupsRoleDeniesUnneededAccess"}},
	{"Leader election and takeover", "integration", []string{"TestWaitsForAControllerInAnotherNamespace", "TestAPeerNamespaceBlocks"}},
	{"Cleanup and removal in any order", "integration", []string{"TestCleanupRemovesEverythingExceptRules", "TestReadygateCanBeRemovedInAnyOrder"}},
	{"The manager works without policies", "integration", []string{"TestTheManagerWorksWithoutPolicies"}},
	{"Manager, reporter and podgate of this build log no errors", "podgate", []string{"TestProgramsOfThisBuildLogNoErrors"}},
	{"Chart: every values file of `charts/readygate/ci` installs, and every field is stored", "chart", []string{"TestEveryValuesFileInstalls"}},
	{"Chart: install, upgrade, uninstall, with Helm 3 and 4", "chart", []string{"TestInstallUpgradeAndUninstall", "TestUninstallAgain"}},
	{"Chart: an upgrade of the API server from v1beta1 to v1", "chart", []string{"TestHelmUpgradeFromV1beta1"}},
	{"Chart: rollback", "chart", []string{"TestRollbackWhileAManagerRuns"}},
	{"Chart: takes over from the reference project", "chart", []string{"TestTakeOverACluster"}},
	{"Chart: policies applied by an administrator", "chart", []string{"TestHelmKeepsPoliciesThatAnAdministratorApplied"}},
	{"install.yaml with kubectl", "chart", []string{"TestPlainManifestsApply"}},
	{"Upgrade from the previous build and back", "chart", []string{"TestUpgradeFromThePreviousBuildAndBack"}},
	{"Examples apply, and every field is stored", "examples", []string{"TestEveryExampleApplies", "TestTheExamplesFitTogether"}},
	{"Both CNI guides", "examples", []string{"TestGuide", "TestCommandsOfTheGuideAsWritten"}},
	{"Reporter reports, reloads, and is limited to its node", "reporter", []string{"TestAReporterReportsItsCheck", "TestConfigurationFileIsReloaded", "TestALimitedReporterCanReport", "TestAReporterIsLimited", "TestSharedAccountIsLimitedToItsNode"}},
	{"Reporter acts as its node (constrained impersonation)", "reporter", []string{"TestAReporterMayActAsItsNode"}},
	{"Plugin: every command with the least rights", "cli", []string{"TestEveryVerbWithTheLeastRights", "TestPodsThatWait", "TestKubectlFindsThePlugin"}},
	{"Plugin: kubectl readiness policy", "cli", []string{"TestPolicyPrintsWhatTheManagerWrites"}},
	{"Plugin and dashboard agree with the manager", "views", []string{"TestEveryViewAgreesWithTheManager"}},
	{"Pods get their gates at creation", "podgate", []string{"TestSelectedPodsAreCreatedWithTheGate", "TestAPodHasTheGatesOfAllItsRules", "TestPodsOfWorkloadsAreCreatedWithTheGate"}},
	{"Gates in pod templates open", "podgate", []string{"TestGatesInPodTemplatesOpen"}},
	{"Gates open and close, the latch", "podgate", []string{"TestGateOpensWhenEveryComponentIsReady", "TestGateClosesAgainOnlyWithClosePolicyOnNotReady", "TestALatch", "TestADeletedRuleOpensItsPods"}},
	{"podgate is limited to its node", "podgate", []string{"TestAnAgentIsLimitedToTheGatesOfItsNode", "TestTheManagerMayOpenGatesAndNothingElse"}},
}

// packages are the directories of test/ that have a row.
func packages() []string {
	var all []string
	for _, r := range rows {
		if !slices.Contains(all, r.pkg) {
			all = append(all, r.pkg)
		}
	}
	return all
}

// testsOf returns the tests of a package.
func testsOf(pkg string) []string {
	var tests []string
	for _, r := range rows {
		if r.pkg == pkg {
			tests = append(tests, r.tests...)
		}
	}
	return tests
}
