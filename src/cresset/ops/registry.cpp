#include <fmt/format.h>

#include <vector>

#include "base/check.h"
#include "ops/families.h"
#include "ops/op_def.h"

namespace cresset::ops {
namespace {

// Operator ids are small and dense, so the table is indexed by them.
struct Table {
  std::vector<const OpDef*> by_id;
  std::vector<const OpDef*> rows;
};

void add_family(Table& table, std::span<const OpDef> family) {
  for (const OpDef& def : family) {
    const graph::OpId id = graph::op_id(name_of(def));
    if (id.index >= table.by_id.size()) table.by_id.resize(id.index + 1, nullptr);
    CRESSET_CHECK(table.by_id[id.index] == nullptr, fmt::format("operator {} has two rows", name_of(def)));
    table.by_id[id.index] = &def;
    table.rows.push_back(&def);
  }
}

Table build() {
  Table table;
#define CRESSET_OP_FAMILY(name) add_family(table, name##_ops());
#include "ops/families.def"
#undef CRESSET_OP_FAMILY
  return table;
}

const Table& table() {
  static const Table instance = build();
  return instance;
}

}  // namespace

std::string_view name_of(const OpDef& def) { return def.schema.substr(0, def.schema.find('(')); }

const OpDef* find(graph::OpId op) {
  const Table& t = table();
  return op.index < t.by_id.size() ? t.by_id[op.index] : nullptr;
}

const OpDef* find(std::string_view name) { return find(graph::op_id(name)); }

std::span<const OpDef* const> all() { return table().rows; }

}  // namespace cresset::ops
