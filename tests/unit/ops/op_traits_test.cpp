#include "ops/op_traits.h"

#include <gtest/gtest.h>

#include "ops/library_traits.h"
#include "ops/op_def.h"

namespace cresset::ops {
namespace {

OpTraits of(std::string_view name) { return traits(graph::op_id(name)); }

TEST(OpTraits, RowsSayWhatTheyRaiseBy) {
  EXPECT_EQ(of("aten::relu").raises, Raises::Never);
  EXPECT_EQ(of("aten::gather").raises, Raises::AlongDim);
  EXPECT_EQ(of("aten::remainder.Tensor").raises, Raises::Divisor);
  EXPECT_EQ(of("aten::linalg_eig").raises, Raises::Anything);
  EXPECT_EQ(of("aten::no_such_operator").raises, Raises::Unknown);
  EXPECT_EQ(of("library::f").raises, Raises::Never);
}

TEST(OpTraits, OperatorsOfOtherLibrariesMayHaveAnyEffect) {
  EXPECT_TRUE(of("library::f").foreign);
  for (const char* name : {"aten::relu", "aten::no_such_operator", "prim::cat", "cresset::cond"})
    EXPECT_FALSE(of(name).foreign) << name;
}

TEST(OpTraits, ViewsAndCopiesHandElementsOn) {
  for (const char* name : {"aten::view", "aten::squeeze.dims", "aten::clone", "aten::_to_copy", "aten::view_copy"})
    EXPECT_TRUE(hands_on(graph::op_id(name))) << name;
  for (const char* name : {"aten::permute", "aten::view.dtype", "aten::relu", "aten::no_such_operator"})
    EXPECT_FALSE(hands_on(graph::op_id(name))) << name;
}

TEST(OpTraits, ARowWithoutRulesIsNoRowOfTheOperatorTable) {
  for (const TraitRow& row : rows_without_rules()) EXPECT_EQ(find(row.name), nullptr) << row.name;
  EXPECT_EQ(of("aten::lu_solve").pivots, 2);
  EXPECT_EQ(of("aten::lu_unpack").pivots, 1);
}

TEST(OpTraits, TheLibrarySaysWhoDrawsAmongOperatorsWithoutRules) {
  EXPECT_FALSE(of("aten::binomial").draws);
  const auto before = library_traits().described;
  library_traits().described = [](graph::OpId) { return OpTraits{.draws = true, .dropout = 4}; };
  EXPECT_TRUE(of("aten::binomial").draws);
  EXPECT_EQ(of("aten::binomial").raises, Raises::Anything);
  EXPECT_EQ(of("aten::no_such_operator").dropout, 4);
  EXPECT_FALSE(of("aten::relu").draws);
  library_traits().described = before;
}

}  // namespace
}  // namespace cresset::ops
