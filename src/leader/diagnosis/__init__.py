"""What is wrong with a picture: noise, compression, blur, enlargement, defects, and the command that would repair it."""
