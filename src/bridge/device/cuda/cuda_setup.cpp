#include "bridge/device/cuda/cuda_setup.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <filesystem>

#include "runtime/cuda/cuda_device.h"

namespace cresset::bridge {
namespace {

using codegen::nvptx::NvptxBackend;

// The folders in which CUDA builds of torch keep nvJitLink: torch's own, and those of NVIDIA's packages beside it.
std::vector<std::string> library_folders() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::filesystem::path torch = std::filesystem::path(info.dli_fname).parent_path();
  std::vector<std::string> out{torch.string()};
  const std::filesystem::path packages = torch.parent_path().parent_path() / "nvidia";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(packages, ignored))
    if (const auto lib = entry.path() / "lib"; std::filesystem::is_directory(lib, ignored)) out.push_back(lib.string());
  return out;
}

Result<bool> open_cuda() {
  if (NvptxBackend::get().is_configured()) return true;
  if (!at::globalContext().hasCUDA()) return Fallback{FallbackReason::CodegenFailed, "torch has no CUDA device", ""};
  const auto& driver = runtime::cuda::Driver::get();
  if (!driver.ok()) return driver.fallback();
  CRESSET_TRY(std::shared_ptr<runtime::GpuDevice> device, runtime::cuda::CudaDevice::open(*driver, 0));
  NvptxBackend::get().configure({.device = std::move(device), .library_folders = library_folders()});
  return true;
}

}  // namespace

const Result<bool>& set_up_cuda() {
  static const auto* const done = new Result<bool>(open_cuda());
  return *done;
}

void use_gpu(codegen::nvptx::NvptxOptions options) { NvptxBackend::get().configure(std::move(options)); }

}  // namespace cresset::bridge
