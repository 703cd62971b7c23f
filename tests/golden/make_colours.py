"""make_colours.py - writes tests/unit/colour_oracle.h: colours as torchvision changes them

An image of 3 x 4 x 5 floats, and what torchvision.transforms.functional makes of it; values are 0 to 255 here and 0 to 1
there. Needs torch and torchvision (made with 0.29)."""
import torch
import torchvision.transforms.functional as F

torch.manual_seed(3)
image = torch.randint(0, 256, (3, 4, 5)).float()
image[:, 0, 0] = torch.tensor([0., 0., 0.])
image[:, 0, 1] = torch.tensor([255., 255., 255.])
image[:, 0, 2] = torch.tensor([90., 90., 90.])  # no hue
image[:, 0, 3] = torch.tensor([255., 0., 0.])
image[:, 0, 4] = torch.tensor([10., 200., 200.])  # two largest
STEPS = [("BRIGHTNESS", F.adjust_brightness, [0, 0.3, 1, 1.7]), ("CONTRAST", F.adjust_contrast, [0, 0.3, 1, 1.7]),
         ("SATURATION", F.adjust_saturation, [0, 0.3, 1, 1.7]), ("HUE", F.adjust_hue, [-0.5, -0.13, 0, 0.21, 0.5])]


def floats(tensor):
    text = [f"{v:.9g}" for v in tensor.flatten().tolist()]
    return ", ".join(t + ("F" if "." in t or "e" in t else ".0F") for t in text)


print("/* colour_oracle.h - made by tests/golden/make_colours.py: colours as torchvision changes them */")
print("#ifndef TESTS_COLOUR_ORACLE_H\n#define TESTS_COLOUR_ORACLE_H\n")
print('#include "libworker/data/transform_colour.h"\n')
print("enum { ORACLE_PLANE = 20, ORACLE_VALUES = 60 };\n")
print(f"static const float oracle_image[ORACLE_VALUES] = {{{floats(image)}}};\n")
print("static const struct {\n    enum colour_step step;\n    double factor;\n    float want[ORACLE_VALUES];\n} oracle[] = {")
for name, adjust, factors in STEPS:
    for factor in factors:
        print(f"    {{COLOUR_{name}, {factor}, {{{floats(adjust(image / 255, factor) * 255)}}}}},")
print("};\n")
print(f"static const float oracle_grey[ORACLE_PLANE] = {{{floats(F.rgb_to_grayscale(image / 255) * 255)}}};")
one = image[:1] / 255
print(f"static const float oracle_one[ORACLE_PLANE] = {{{floats(F.adjust_contrast(one, 0.4) * 255)}}};")
print("\n#endif")
