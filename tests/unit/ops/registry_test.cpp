#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace cresset::ops {
namespace {

TEST(OpRegistry, ElementwiseOperatorsDoNotLookAtTheIndex) {
  for (const char* name : {"aten::add.Tensor", "aten::sin", "aten::where.self", "aten::zeros_like", "aten::gelu",
                           "aten::tanh_backward", "aten::clone"})
    EXPECT_TRUE(is_elementwise(graph::op_id(name))) << name;
  for (const char* name : {"aten::tril", "aten::roll", "aten::glu", "aten::zeros", "aten::new_zeros", "aten::arange",
                           "aten::constant_pad_nd", "aten::slice_scatter", "aten::view", "aten::sum.dim_IntList"})
    EXPECT_FALSE(is_elementwise(graph::op_id(name))) << name;
}

TEST(OpRegistry, EveryRowIsWhole) {
  ASSERT_GT(all().size(), 200u);
  for (const OpDef* def : all()) {
    SCOPED_TRACE(std::string(def->schema));
    EXPECT_NE(def->shape, nullptr);
    switch (def->op_class) {
      case OpClass::Pointwise:
        EXPECT_NE(def->element, nullptr);
        break;
      case OpClass::View:
        break;  // as_strided and its kin are resolved by the lowering
      case OpClass::Reduction:
        EXPECT_NE(def->reduction, nullptr);
        EXPECT_NE(def->element, nullptr);
        break;
      case OpClass::Composite:
        EXPECT_NE(def->decompose, nullptr);
        break;
      case OpClass::Concat:
      case OpClass::Extern:
        break;
    }
  }
}

// The full comparison with torch's schemas is tests/python/harness/check_schemas.py.
TEST(OpRegistry, SchemasReadAsSchemas) {
  for (const OpDef* def : all()) {
    SCOPED_TRACE(std::string(def->schema));
    const std::string_view text = def->schema;
    EXPECT_NE(name_of(*def).find("::"), std::string_view::npos);
    EXPECT_EQ(text[name_of(*def).size()], '(');
    EXPECT_NE(text.find(") -> "), std::string_view::npos);
    EXPECT_EQ(std::count(text.begin(), text.end(), '('), std::count(text.begin(), text.end(), ')'));
  }
}

TEST(OpRegistry, FindsByNameAndById) {
  for (const OpDef* def : all()) {
    EXPECT_EQ(find(name_of(*def)), def);
    EXPECT_EQ(find(graph::op_id(name_of(*def))), def);
  }
  EXPECT_EQ(find("aten::no_such_operator"), nullptr);
  EXPECT_EQ(find(graph::OpId{}), nullptr);
}

TEST(OpRegistry, IsSafeFromAnyThread) {
  std::vector<std::thread> threads;
  std::vector<const OpDef*> found(8, nullptr);
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 100; ++k) graph::op_id("test::name_" + std::to_string((i + 1) * static_cast<size_t>(k)));
      found[i] = find("aten::add.Tensor");
    });
  for (std::thread& thread : threads) thread.join();
  for (const OpDef* def : found) EXPECT_EQ(def, find("aten::add.Tensor"));
}

}  // namespace
}  // namespace cresset::ops
