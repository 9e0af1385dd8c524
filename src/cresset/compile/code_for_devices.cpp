#include "compile/code_for_devices.h"

#include <algorithm>

namespace cresset::driver {
namespace {

using codegen::Backend;

// Groups kernel positions by backend, in order. A nullptr stands for devices without a backend.
template <class DeviceOf>
std::vector<std::pair<Backend*, std::vector<size_t>>> by_backend(size_t count, const DeviceOf& device_of) {
  std::vector<std::pair<Backend*, std::vector<size_t>>> parts;
  for (size_t i = 0; i < count; ++i) {
    Backend* const backend = codegen::backend_of(device_of(i));
    auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.first == backend; });
    if (part == parts.end()) part = parts.insert(part, {backend, {}});
    part->second.push_back(i);
  }
  return parts;
}

std::vector<DeviceKind> devices_of(const runtime::Program& program, size_t kernels) {
  std::vector<DeviceKind> devices(kernels);
  for (const runtime::Step& step : program.steps)
    if (const auto* launch = std::get_if<runtime::Launch>(&step)) devices[launch->kernel] = launch->device;
  return devices;
}

}  // namespace

Result<CodeForDevices> CodeForDevices::schedule(const runtime::Program& program,
                                                const std::vector<const loop::Kernel*>& kernels) {
  const std::vector<DeviceKind> devices = devices_of(program, kernels.size());
  CodeForDevices out;
  out.count_ = kernels.size();
  for (auto& [backend, positions] : by_backend(kernels.size(), [&](size_t i) { return devices[i]; })) {
    if (backend == nullptr)
      return Fallback{FallbackReason::CodegenFailed, "generating code for a device that has no backend", ""};
    std::vector<const loop::Kernel*> its;
    for (const size_t i : positions) its.push_back(kernels[i]);
    out.parts_.push_back({backend, std::move(positions), backend->schedule(its)});
  }
  return out;
}

size_t CodeForDevices::distinct() const {
  size_t count = 0;
  for (const Part& part : parts_) count += part.scheduled->distinct();
  return count;
}

Result<codegen::CompiledKernels> CodeForDevices::generate() const {
  codegen::CompiledKernels out(count_);
  for (const Part& part : parts_) {
    CRESSET_TRY(codegen::CompiledKernels made, part.backend->generate(*part.scheduled));
    for (size_t i = 0; i < made.size(); ++i) out[part.positions[i]] = std::move(made[i]);
  }
  return out;
}

std::optional<codegen::CompiledKernels> find_code(const std::vector<runtime::KernelRecord>& records) {
  codegen::CompiledKernels out(records.size());
  for (const auto& [backend, positions] : by_backend(records.size(), [&](size_t i) { return records[i].device; })) {
    if (backend == nullptr) return std::nullopt;
    std::vector<runtime::KernelRecord> its;
    for (const size_t i : positions) its.push_back(records[i]);
    std::optional<codegen::CompiledKernels> found = backend->find(its);
    if (!found) return std::nullopt;
    for (size_t i = 0; i < found->size(); ++i) out[positions[i]] = std::move((*found)[i]);
  }
  return out;
}

}  // namespace cresset::driver
