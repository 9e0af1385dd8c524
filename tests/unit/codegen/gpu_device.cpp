#include "gpu_device.h"

#include <cstdlib>
#include <sstream>

#include "codegen/nvptx/nvptx_backend.h"
#include "runtime/cuda/cuda_device.h"

namespace cresset::codegen {
namespace {

using runtime::cuda::CudaDevice;
using runtime::cuda::Driver;

std::vector<std::string> library_folders() {
  std::vector<std::string> out;
  const char* given = std::getenv("CRESSET_TEST_CUDA_LIBRARIES");
  std::istringstream text(given == nullptr ? "" : given);
  for (std::string folder; std::getline(text, folder, ':');) out.push_back(folder);
  return out;
}

Result<std::shared_ptr<runtime::GpuDevice>> open_device() {
  const auto& driver = Driver::get();
  if (!driver.ok()) return driver.fallback();
  CRESSET_TRY(std::shared_ptr<CudaDevice> device, CudaDevice::open(*driver, 0));
  nvptx::NvptxBackend::get().configure(
      {.device = device, .assembler = nullptr, .library_folders = library_folders(), .from_disk_cache = false});
  return std::shared_ptr<runtime::GpuDevice>(std::move(device));
}

}  // namespace

Result<std::shared_ptr<runtime::GpuDevice>> test_device() {
  static const auto* device = new Result<std::shared_ptr<runtime::GpuDevice>>(open_device());
  return *device;
}

}  // namespace cresset::codegen
