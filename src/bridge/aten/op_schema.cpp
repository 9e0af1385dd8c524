#include "bridge/aten/op_schema.h"

#include <ATen/core/ivalue.h>

#include "bridge/aten/overloads.h"
#include "ops/op_traits.h"

namespace cresset::bridge {
namespace {

using c10::TypeKind;

bool returns_alias(const c10::FunctionSchema& schema, bool write) {
  for (const c10::Argument& r : schema.returns())
    if (r.alias_info() != nullptr && r.alias_info()->isWrite() == write) return true;
  return false;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

std::optional<c10::OperatorHandle> find_schema(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchema({name, overload});
}

// Names of the functional counterpart: without the underscore, or __and__ for __iand__. Fills of tensors with random
// numbers have counterparts of cresset's own, which keep the tensor's order of drawing.
std::pair<std::string, std::string> functional_name(const std::string& name, const std::string& overload) {
  static const std::unordered_map<std::string, std::pair<std::string, std::string>> fills = {
      {"aten::normal_", {"cresset::normal_fill", ""}},
      {"aten::bernoulli_.float", {"cresset::bernoulli_fill", ""}},
      {"aten::bernoulli_.Tensor", {"cresset::bernoulli_fill", "Tensor"}}};
  const std::string full = overload.empty() ? name : name + "." + overload;
  if (auto it = fills.find(full); it != fills.end()) return it->second;
  constexpr std::string_view kReflected = "aten::__i";
  if (name.starts_with(kReflected)) return {"aten::__" + name.substr(kReflected.size()), overload};
  return {name.substr(0, name.size() - 1), overload};
}

// Whether a functional operator takes the same arguments as the in-place operator; either may have more at its end.
bool takes_the_same(const c10::FunctionSchema& in_place, const c10::FunctionSchema& functional) {
  const auto &a = in_place.arguments(), &b = functional.arguments();
  if (functional.is_mutable() || b.empty()) return false;
  return std::equal(a.begin(), a.begin() + static_cast<long>(std::min(a.size(), b.size())), b.begin(),
                    [](const c10::Argument& x, const c10::Argument& y) { return *x.real_type() == *y.real_type(); });
}

// The operator of this name, or another overload: pow_.Scalar corresponds to pow.Tensor_Scalar, not to pow.Scalar.
std::optional<c10::OperatorHandle> functional_of_in_place(const c10::FunctionSchema& schema) {
  const auto [base, overload] = functional_name(schema.name(), schema.overload_name());
  const std::optional<c10::OperatorHandle> named = find_schema(base, overload);
  if (named && takes_the_same(schema, named->schema())) return named;
  for (const c10::OperatorHandle& found : overloads_of(base))
    if (found.hasSchema() && found.schema().arguments().size() == schema.arguments().size() &&
        takes_the_same(schema, found.schema()))
      return found;
  return std::nullopt;
}

// An out= overload's functional counterpart: the overload of the same base with the same arguments except the outs.
std::optional<c10::OperatorHandle> functional_of_out(const c10::OperatorHandle& handle, size_t outs) {
  const c10::FunctionSchema& schema = handle.schema();
  const size_t kept = schema.arguments().size() - outs;
  const auto same_arguments = [&](const c10::FunctionSchema& other) {
    if (other.is_mutable() || other.arguments().size() != kept || other.returns().size() != outs) return false;
    for (size_t i = 0; i < kept; ++i)
      if (other.arguments()[i].name() != schema.arguments()[i].name() ||
          *other.arguments()[i].real_type() != *schema.arguments()[i].real_type())
        return false;
    return true;
  };
  for (const c10::OperatorHandle& found : overloads_of(schema.name()))
    if (found.hasSchema() && same_arguments(found.schema())) return found;
  return std::nullopt;
}

void classify_mutable(OpEntry& entry, const c10::FunctionSchema& schema) {
  size_t written = 0, trailing = 0;
  for (const c10::Argument& a : schema.arguments()) written += writes(a);
  for (size_t i = schema.arguments().size(); i-- > 0 && writes(schema.arguments()[i]);) ++trailing;
  const std::string& name = schema.name();
  if (written == 1 && writes(schema.arguments()[0]) && (name.back() == '_')) {
    std::optional<c10::OperatorHandle> functional = functional_of_in_place(schema);
    if (!functional) return;
    entry.op_class = returns_alias(functional->schema(), false) ? OpEntry::Class::InPlaceView : OpEntry::Class::InPlace;
    entry.functional_handle = functional;
    return;
  }
  if (written == trailing && written > 0) {
    std::optional<c10::OperatorHandle> functional = functional_of_out(entry.handle, trailing);
    if (!functional) return;
    entry.op_class = OpEntry::Class::Out;
    entry.out_arguments = trailing;
    entry.functional_handle = functional;
  }
}

}  // namespace

std::string qualified_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

ArgType arg_type(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (type->kind() == TypeKind::OptionalType) type = type->castRaw<c10::OptionalType>()->getElementType();
  switch (type->kind()) {
    case TypeKind::TensorType:
      return ArgType::Tensor;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgType::Int;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return ArgType::Float;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return ArgType::Bool;
    case TypeKind::NumberType:
      return ArgType::Scalar;
    case TypeKind::StringType:
      return ArgType::String;
    case TypeKind::ScalarTypeType:
      return ArgType::DType;
    case TypeKind::LayoutType:
      return ArgType::Layout;
    case TypeKind::DeviceObjType:
      return ArgType::Device;
    case TypeKind::MemoryFormatType:
      return ArgType::MemoryFormat;
    case TypeKind::GeneratorType:
      return ArgType::Generator;
    case TypeKind::ListType: {
      const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
      switch (element->kind()) {
        case TypeKind::TensorType:
          return ArgType::TensorList;
        case TypeKind::OptionalType:
          return element->castRaw<c10::OptionalType>()->getElementType()->kind() == TypeKind::TensorType
                     ? ArgType::OptionalTensorList
                     : ArgType::Other;
        case TypeKind::IntType:
        case TypeKind::SymIntType:
          return ArgType::IntList;
        case TypeKind::FloatType:
          return ArgType::FloatList;
        case TypeKind::BoolType:
          return ArgType::BoolList;
        default:
          return ArgType::Other;
      }
    }
    default:
      return ArgType::Other;
  }
}

std::optional<c10::OperatorHandle> find_operator(graph::OpId op) {
  const std::string name(graph::op_name(op));
  const size_t dot = name.find('.', name.find("::"));
  if (dot == std::string::npos) return find_schema(name, "");
  return find_schema(name.substr(0, dot), name.substr(dot + 1));
}

// A library's kernel may run any code.
static bool is_made_of_others(const OpEntry& entry) {
  if (!entry.name.starts_with("aten::"))
    return !entry.name.starts_with("prims::") && !entry.name.starts_with("cresset::");
  return entry.functional_handle && ops::traits(entry.functional).calls_others;
}

static bool holds_object(const c10::TypePtr& type) {
  if (type->kind() == TypeKind::ClassType || type->kind() == TypeKind::AnyType) return true;
  const c10::ArrayRef<c10::TypePtr> inside = type->containedTypes();
  return std::any_of(inside.begin(), inside.end(), holds_object);
}

bool is_foreign(const c10::FunctionSchema& schema) {
  const std::string_view name = schema.name();
  if (name.substr(0, name.find("::")).find("c10d") != std::string_view::npos) return true;
  const auto is_object = [](const c10::Argument& a) { return a.name() == "group_name" || holds_object(a.type()); };
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), is_object) ||
         std::any_of(schema.returns().begin(), schema.returns().end(), is_object);
}

OpEntry classify(const c10::OperatorHandle& handle) {
  const c10::FunctionSchema& schema = handle.schema();
  OpEntry entry{handle, qualified_name(handle.operator_name()), OpEntry::Class::Opaque, {}, std::nullopt, {}};
  entry.foreign = is_foreign(schema);
  for (const c10::Argument& a : schema.arguments()) {
    if (a.name() == "sparse" && arg_type(a) == ArgType::Bool) entry.sparse_argument = entry.arg_types.size();
    entry.arg_types.push_back(arg_type(a));
  }
  if (!schema.is_mutable()) {
    entry.op_class = returns_alias(schema, false) ? OpEntry::Class::View : OpEntry::Class::Functional;
    entry.functional_handle = handle;
  } else {
    classify_mutable(entry, schema);
  }
  if (entry.functional_handle) {
    entry.functional = graph::op_id(qualified_name(entry.functional_handle->operator_name()));
    for (const c10::Argument& a : entry.functional_handle->schema().returns())
      entry.return_types.push_back(arg_type(a));
  }
  entry.made_of_others = is_made_of_others(entry);
  return entry;
}

}  // namespace cresset::bridge
