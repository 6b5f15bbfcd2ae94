"""A picture is decoded, turned and blurred."""
import sys
from PIL import Image, ImageFilter
image = Image.open(sys.argv[1]).convert("RGB").rotate(7).filter(ImageFilter.GaussianBlur(4))
print(image.size, image.getpixel((99, 99)))
