#include <fmt/format.h>

#include <vector>

#include "base/check.h"
#include "ops/families.h"
#include "ops/library_traits.h"
#include "ops/op_def.h"

namespace cresset::ops {
namespace {

// Operator ids are small and dense, so the table is indexed by them.
struct Table {
  std::vector<const OpDef*> by_id;
  std::vector<const OpTraits*> traits_by_id;  // also of operators without rules
  std::vector<const OpDef*> rows;
};

template <class T>
void set(std::vector<const T*>& by_id, std::string_view name, const T& row) {
  const graph::OpId id = graph::op_id(name);
  if (id.index >= by_id.size()) by_id.resize(id.index + 1, nullptr);
  CRESSET_CHECK(by_id[id.index] == nullptr, fmt::format("operator {} has two rows", name));
  by_id[id.index] = &row;
}

void add_family(Table& table, std::span<const OpDef> family) {
  for (const OpDef& def : family) {
    set(table.by_id, name_of(def), def);
    set(table.traits_by_id, name_of(def), def.traits);
    table.rows.push_back(&def);
  }
}

Table build() {
  Table table;
#define CRESSET_OP_FAMILY(name) add_family(table, name##_ops());
#include "ops/families.def"
#undef CRESSET_OP_FAMILY
  for (const TraitRow& row : rows_without_rules()) set(table.traits_by_id, row.name, row.traits);
  return table;
}

const Table& table() {
  static const Table instance = build();
  return instance;
}

// Random numbers are drawn by operators with and without a row, as the library says.
OpTraits without_rules(graph::OpId op, const OpTraits* row) {
  const std::string_view name = graph::op_name(op);
  const bool is_aten = name.starts_with("aten::");
  OpTraits out;
  if (row != nullptr) {
    out = *row;
  } else {
    out.raises = is_aten ? Raises::Unknown : Raises::Never;
    out.foreign = !is_aten && !name.starts_with("prim::") && !name.starts_with("cresset::");
  }
  const OpTraits described = library_traits().described(op);
  out.draws = described.draws;
  out.dropout = described.dropout;
  return out;
}

}  // namespace

OpTraits traits(graph::OpId op) {
  const Table& t = table();
  const OpTraits* const row = op.index < t.traits_by_id.size() ? t.traits_by_id[op.index] : nullptr;
  return row != nullptr && find(op) != nullptr ? *row : without_rules(op, row);
}

std::string_view name_of(const OpDef& def) { return def.schema.substr(0, def.schema.find('(')); }

const OpDef* find(graph::OpId op) {
  const Table& t = table();
  return op.index < t.by_id.size() ? t.by_id[op.index] : nullptr;
}

const OpDef* find(std::string_view name) { return find(graph::op_id(name)); }

std::span<const OpDef* const> all() { return table().rows; }

}  // namespace cresset::ops
