# The page for many visitors, as an ordinary user:
#     docker build -t leader .
#     docker run --rm -p 7860:7860 -e LEADER_WEB_AUTH=name:password leader
FROM python:3.11-slim-bookworm
RUN useradd --create-home --uid 10001 leader
WORKDIR /opt/leader
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/venv
RUN /opt/venv/bin/python -m pip install --no-cache-dir --constraint constraints.txt torch
RUN /opt/venv/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[web]'
ENV PATH=/opt/venv/bin:$PATH
ENV PYTHONDONTWRITEBYTECODE=1
ENV MPLCONFIGDIR=/tmp/matplotlib
USER leader
EXPOSE 7860
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/health', timeout=5)"]
CMD ["leader", "web", "--host", "0.0.0.0", "--port", "7860"]
